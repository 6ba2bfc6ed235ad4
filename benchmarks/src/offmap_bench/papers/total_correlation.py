"""Estimating, lowering and raising total correlation."""

from offmap_bench.claims import Claim
from offmap_bench.papers.page import Page
from offmap_bench.tables.total_correlation import HALVED, IMPROVED_KNN, KNN

PAGE = Page(
    name="total-correlation",
    title="Total correlation (thesis, chapter 2)",
    about="How much variables share, as a number, as a penalty and as an objective.",
    items=(
        "total-correlation-staircase",
        "total-correlation-infonce",
        "total-correlation-mine",
        "total-correlation-nwj",
        "total-correlation-club",
        "total-correlation-js",
        "total-correlation-line-errors",
        "total-correlation-tree-errors",
        "total-correlation-samples",
        "disentangling",
        "disentangling-causes",
        "disentangling-swaps",
        "sentence-views",
        "sentence-views-longer",
    ),
    claims=(
        *(
            Claim(
                item=f"estimate at total correlation 10, {row}",
                table="total-correlation-staircase",
                row=row,
                columns=("TC 10",),
                metric="mean",
                cause=cause,
            )
            for row, cause in (
                ("Line InfoNCE, growing", "theirs is one run; ours spread by 0.1"),
                ("Tree InfoNCE", "theirs is one run; ours spread by 0.2"),
            )
        ),
        *(
            Claim(
                item=f"error of {row}, {column}",
                table="total-correlation-samples",
                row=row,
                columns=(column,),
                metric="error",
                cause=cause,
            )
            for row, column, cause in (
                (KNN, "d = 10, TC 10", ""),
                (IMPROVED_KNN, "d = 10, TC 10", ""),
                (HALVED, "d = 10, TC 10", ""),
                (HALVED, "d = 2, TC 10", "unit spread bounds CLUB by 4; bounded and free spreads fit no better"),
            )
        ),
        *(
            Claim(
                item=f"coloured digits, {metric}, penalty without adversary",
                table="disentangling",
                row="TC",
                columns=("no adversary",),
                metric=metric,
                cause="ten epochs here, 300 there (longer training not tried)",
            )
            for metric in ("acc_d", "acc_c", "res_l2")
        ),
        Claim(
            item="coloured digits, digit accuracy, TC above AE",
            table="disentangling",
            row="TC",
            above="AE",
            metric="acc_d",
        ),
        Claim(
            item="sentences, TC-Tree above MI-fix",
            table="sentence-views-longer",
            row="TC-Tree",
            above="MI-fix",
            columns=("dropout",),
            metric="mean",
            cause="few training steps; differences are below their noise",
        ),
    ),
    differences={
        "4,000 steps per level": "the same",
        "coloured digits: 300 epochs": "10 epochs",
        "sentences: BERT, a million sentences": "MiniLM, a few hundred sentences",
    },
)
