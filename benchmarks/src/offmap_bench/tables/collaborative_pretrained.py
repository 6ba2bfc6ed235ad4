"""CIFAR-10: table 2 with features of a pretrained network, since its rows of features depend on their quality."""

from typing import Any

from offmap.collaborative import RatioDetector, SeparateFlowDetector
from offmap_bench.pretrained_images import FEATURES, SIDE, pretrained_features
from offmap_bench.table import Table
from offmap_bench.tables.collaborative_apart import (
    KINDS,
    PRINTED,
    RANDOM,
    ROWS,
    Contender,
    OfFeatures,
    judged,
    linear_probe,
)
from offmap_bench.tables.collaborative_images import CPU, SMALLER, SOURCE, column

ABOUT = (
    f"Features are {FEATURES} principal components of the last layer of EfficientNet-lite0 on images enlarged to "
    f"{SIDE} × {SIDE}. It was trained on the labels of ImageNet; the paper's encoder saw no labels."
)


def measure(contender: Contender, title: str, seed: int) -> dict[str, float]:
    """Fits a detector to the features of all tasks of a column and judges the test images."""
    return judged(contender, pretrained_features(), title, seed)


def measure_probe(method: Any, title: str, seed: int) -> dict[str, float]:
    """The labels that a linear classifier finds in the pretrained features."""
    return linear_probe(pretrained_features())


OF_FEATURES = {name: row for name, row in ROWS.items() if "of features" in name and "own vectors" not in name}
LONGER = {
    "ratio of features, tenfold pace, together": OfFeatures(
        RatioDetector(head="concat", embedding_decay=0.0, embedding_lr_factor=10.0, **RANDOM)
    ),
    "two towers of features, together": OfFeatures(RatioDetector(head="two_tower", embedding_decay=1e-3, **RANDOM)),
    "flow of features, apart, 200 passes": OfFeatures(SeparateFlowDetector(calibration=0.0), passes=200),
}
TABLES = (
    Table(
        name="collaborative-cifar10-pretrained",
        source=f"{SOURCE}, table 2",
        caption="CIFAR-10: the rows of features of table 2, with features of a pretrained network.",
        rows=OF_FEATURES,
        columns=tuple(column(k) for k in KINDS),
        metrics=("auroc",),
        measure=measure,
        seeds={"cpu": range(2)},
        profiles={"cpu": CPU},
        printed={
            (row, column(k), "auroc"): PRINTED[row][place] for row in OF_FEATURES for place, k in enumerate(KINDS)
        },
        needs=("cifar10",),
        notes="The rows, tasks and settings of `collaborative-cifar10-apart`. " + ABOUT + SMALLER,
        higher_is_better={"auroc": True},
        formats={"auroc": ".2%"},
    ),
    Table(
        name="collaborative-cifar10-pretrained-features",
        source=f"{SOURCE}, appendix B.1",
        caption="CIFAR-10: labels that a linear classifier finds in the pretrained features.",
        rows={"EfficientNet-lite0": {"side": SIDE, "features": FEATURES}},
        columns=("CIFAR-10",),
        metrics=("training", "test"),
        measure=measure_probe,
        seeds={"cpu": range(2)},
        profiles={"cpu": {}},
        needs=("cifar10",),
        notes="Nothing is random here: both seeds give the same. " + ABOUT + SMALLER,
        higher_is_better={"training": True, "test": True},
        formats={"training": ".1%", "test": ".1%"},
    ),
    Table(
        name="collaborative-cifar10-pretrained-pace",
        source=f"{SOURCE}, table 2",
        caption="CIFAR-10, pretrained features: embeddings that move faster, two towers, and a flow with more passes.",
        rows=LONGER,
        columns=(column(2), column(4)),
        metrics=("auroc",),
        measure=measure,
        seeds={"cpu": range(2)},
        profiles={"cpu": CPU},
        needs=("cifar10",),
        notes="As in `collaborative-cifar10-pretrained`, where embeddings move at the step size of the network and a "
        "flow takes 20 passes. " + ABOUT + SMALLER,
        higher_is_better={"auroc": True},
        formats={"auroc": ".2%"},
    ),
)
