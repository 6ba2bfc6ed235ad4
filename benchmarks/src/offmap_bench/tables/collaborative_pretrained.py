"""CIFAR-10: table 2 with features of a pretrained network, since its rows of features depend on their quality."""

from typing import Any

from offmap_bench.pretrained_images import FEATURES, SIDE, pretrained_features
from offmap_bench.table import Table
from offmap_bench.tables.collaborative_apart import KINDS, PRINTED, ROWS, Contender, judged, linear_probe
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
)
