"""Collaborative anomaly detection."""

from offmap_bench.claims import Claim
from offmap_bench.papers.page import Page

_SHORT = "six passes, no augmentation; label*, k = 2: 20 augmented passes bring 85 to 90"
_COUNT = "true lift gives 84 by count; which category is nominal is unclear; search ended"

PAGE = Page(
    name="collaborative",
    title="Collaborative Anomaly Detection",
    about="Many entities with few rows each: what is unusual for this one?",
    items=(
        "collaborative-movielens",
        "collaborative-movielens-vectors",
        "collaborative-users",
        "collaborative-cifar10-apart",
        "collaborative-cifar10-features",
        "collaborative-cifar10",
        "collaborative-cifar10-passes",
        "collaborative-cifar10-transfer",
        "collaborative-similarity",
        "collaborative-mnist",
        "collaborative-digits",
    ),
    claims=(
        *(
            Claim(
                item=f"MovieLens, {metric}, learned embeddings",
                table="collaborative-movielens",
                row="ratio, learned",
                columns=("behaviour only",),
                metric=metric,
                cause=_COUNT,
            )
            for metric in ("age", "occupation")
        ),
        Claim(
            item="MovieLens, age, ratio above Gaussian",
            table="collaborative-movielens",
            row="ratio, learned",
            above="Gaussian",
            columns=("behaviour only",),
            metric="age",
            cause=_COUNT,
        ),
        *(
            Claim(
                item=f"MNIST, learned embeddings, {column}",
                table="collaborative-mnist",
                row="learned, 64 seed tasks",
                columns=(column,),
                metric="auroc",
            )
            for column in ("k = 4 (210 tasks)", "k = 5 (252 tasks)")
        ),
        Claim(
            item="MNIST, learned above random",
            table="collaborative-mnist",
            row="learned, 64 seed tasks",
            above="random",
            metric="auroc",
        ),
        *(
            Claim(
                item=f"CIFAR-10, {row}",
                table="collaborative-cifar10",
                row=row,
                metric="auroc",
                cause=_SHORT,
            )
            for row in ("label*", "learned, 64 seed tasks", "pseudo-label", "random")
        ),
        Claim(
            item="CIFAR-10, learned above random",
            table="collaborative-cifar10",
            row="learned, 64 seed tasks",
            above="random",
            metric="auroc",
        ),
        Claim(
            item="CIFAR-10, together above apart",
            table="collaborative-cifar10-apart",
            row="ratio, together",
            above="ratio, apart",
            metric="auroc",
            cause="random embeddings of the concatenating network; two towers do lead",
        ),
        Claim(
            item="CIFAR-10, ratio above flow",
            table="collaborative-cifar10-apart",
            row="ratio of features, together",
            above="flow of features, together",
            metric="auroc",
        ),
        Claim(
            item="CIFAR-10, trained on pairs, tested on triples",
            table="collaborative-cifar10-transfer",
            row="k = 2",
            metric="n = 3",
            cause=_SHORT,
        ),
    ),
    differences={
        "50,000 images of CIFAR-10": "20,000",
        "features 64-128-256-512": "a quarter of the width",
        "augmentation in training": "none; collaborative-cifar10-passes says what it brings",
        "training to convergence on a GPU": "six passes on two cores",
        "users described by DeepFM": "DeepFM, with and without the demographic fields that the test asks for",
    },
)
