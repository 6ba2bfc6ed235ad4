"""Estimating, lowering and raising total correlation."""

from offmap_bench.claims import Claim
from offmap_bench.papers.page import Page
from offmap_bench.tables.total_correlation import HALVED

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
        "total-correlation-neighbours",
        "disentangling",
        "disentangling-adversary",
        "disentangling-width",
        "disentangling-swaps",
        "sentence-views",
        "sentence-views-many",
        "sentence-views-mpnet",
    ),
    claims=(
        *(
            Claim(
                item=f"estimate at total correlation 10, {row}",
                table="total-correlation-staircase",
                row=row,
                columns=("TC 10",),
                metric="mean",
            )
            for row in ("Line InfoNCE, growing", "Tree InfoNCE")
        ),
        *(
            Claim(
                item=f"error of {row}, {column}",
                table=table,
                row=row,
                columns=(column,),
                metric="error",
                cause=cause,
            )
            for table, row, column, cause in (
                ("total-correlation-neighbours", "KNN", "d = 2, TC 10", ""),
                ("total-correlation-neighbours", "Bias-improved KNN", "d = 2, TC 10", ""),
                ("total-correlation-neighbours", "KNN", "d = 10, TC 10", ""),
                ("total-correlation-samples", HALVED, "d = 10, TC 10", ""),
                (
                    "total-correlation-samples",
                    "Tree CLUB",
                    "d = 10, TC 10",
                    "the authors' code halves the units of CLUB: the line above",
                ),
                (
                    "total-correlation-samples",
                    "Tree CLUB",
                    "d = 2, TC 10",
                    "with unit variance CLUB is at most 4 (tested); the thesis does not state its variant",
                ),
            )
        ),
        *(
            Claim(
                item=f"coloured digits, {metric}, penalty without adversary",
                table="disentangling",
                row="TC, 16 style codes",
                columns=("no adversary",),
                metric=metric,
                cause=f"short training; with five times the epochs (two seeds, validation images) it goes from {gain}",
            )
            for metric, gain in (
                ("acc_d", "80 to 88"),
                ("acc_c", "89 to 95; as many digits are unreadable without a swap"),
                ("res_l2", "116 to 80; nine tenths of it are there without a swap"),
            )
        ),
        Claim(
            item="coloured digits, digit accuracy, TC above AE",
            table="disentangling",
            row="TC, 16 style codes",
            above="AE, 16 style codes",
            columns=("no adversary",),
            metric="acc_d",
        ),
        Claim(
            item="sentences, templates: TC-Tree above MI-fix",
            table="sentence-views-many",
            row="TC-Tree",
            above="MI-fix",
            metric="mean",
        ),
        Claim(
            item="sentences, templates, mpnet: TC-Tree above MI-fix",
            table="sentence-views-mpnet",
            row="TC-Tree",
            above="MI-fix",
            metric="mean",
        ),
        Claim(
            item="sentences, dropout: TC-Tree above MI-fix",
            table="sentence-views",
            row="TC-Tree",
            above="MI-fix",
            columns=("dropout",),
            metric="mean",
            cause="within noise: twelve steps move an encoder that was trained on pairs by at most 0.5 points",
        ),
    ),
    differences={
        "4,000 steps per level": "the same",
        "hidden units of a line grow with its variables (code)": "15 in all terms; in one row they grow",
        "coloured digits: 300 epochs": "10 epochs",
        "coloured digits: 64 style codes": "16, chosen on validation images; rows with 64, too",
        "coloured digits: all losses move all codes": "reconstruction and penalty move the style code alone",
        "sentences: BERT, a million sentences": "MiniLM, which is trained on pairs already, and 20,000 sentences; "
        "mpnet, of the size of BERT, with 2,000",
    },
)
