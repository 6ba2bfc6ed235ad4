"""CIFAR-10: every task for itself, and all tasks together, from images and from features learnt without labels."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from offmap.arrays import in_chunks
from offmap.collaborative import (
    EntityContrastiveDetector,
    EntityFlowDetector,
    EntityGaussianDetector,
    EntitySVDDDetector,
    RatioDetector,
    SeparateFlowDetector,
    SeparateGaussianDetector,
    SeparateRatioDetector,
)
from offmap_bench.image_tasks import Images, active_classes, exposed_tasks, images
from offmap_bench.table import Table
from offmap_bench.tables.collaborative_images import (
    AUGMENTED,
    CONCAT,
    CPU,
    NOTES,
    PAPER,
    SMALLER,
    SOURCE,
    TOWERS,
    column,
)

KINDS = (1, 2, 3, 4)
# Width of the convolutions that features come from, which are 8 times as many, and passes over the images.
FEATURES_OF, FEATURE_EPOCHS = 16, 8


@lru_cache(maxsize=1)
def features(seed: int = 0) -> Images:
    """The images of CIFAR-10 as 128 features each, of an encoder that learnt by contrast from the training images."""
    data = images("cifar10")
    encoder = EntityContrastiveDetector(
        calibration=0.0,
        network="conv",
        conv_channels=FEATURES_OF,
        epochs=FEATURE_EPOCHS,
        batch_size=256,
        random_state=seed,
    )
    # Its features are learnt from rows alone, whatever their entity.
    encoder.fit(data.X, np.arange(len(data.X)) % 2)
    body = encoder.features_.get_submodule("0")
    made = [in_chunks(lambda X: (body(X),), X.reshape(*X.shape[:3], -1), "cpu")[0] for X in (data.X, data.X_test)]
    return Images(made[0], data.y, made[1], data.y_test)


@dataclass(frozen=True)
class Contender:
    """A detector, and whether it sees images or their features."""

    detector: Any
    encoded: bool = False
    conv_channels: int = PAPER["conv_channels"]
    epochs: int = 50
    patience: int | None = 5
    batch_size: int = 256
    augment: str = "none"

    def ready(self, seed: int) -> Any:
        """The detector with the settings of the profile that it has."""
        own = {name: value for name, value in vars(self).items() if name in self.detector.get_params()}
        return self.detector.set_params(random_state=seed, **own)


@dataclass(frozen=True)
class OfFeatures(Contender):
    """A detector that sees features of images; its passes cost little, so that every profile has as many."""

    encoded: bool = True
    passes: int = 20

    def ready(self, seed: int) -> Any:
        """The detector with its own number of passes; those that learn together stop when it does not help."""
        ready = super().ready(seed)
        own = {"epochs": self.passes, "patience": 5, "augment": "none"}
        return ready.set_params(**{name: value for name, value in own.items() if name in ready.get_params()})


def measure(contender: Contender, title: str, seed: int) -> dict[str, float]:
    """Fits a detector to all tasks of a column and judges the test images."""
    return judged(contender, features() if contender.encoded else images("cifar10"), title, seed)


def judged(contender: Contender, data: Images, title: str, seed: int) -> dict[str, float]:
    """The AUROC of a detector that is fitted to all tasks of a column of ``data``."""
    active = active_classes(int(title.split()[2]))
    detector = contender.ready(seed).fit(data.X, exposed_tasks(data.y, active, np.random.default_rng(seed)))
    return {"auroc": data.auroc(detector.familiarity(data.X_test, np.arange(len(active))), active)}


def measure_features(method: Any, column: str, seed: int) -> dict[str, float]:
    """The labels that a linear classifier finds in features that an encoder learnt from the images."""
    return linear_probe(features(seed))


def linear_probe(data: Images) -> dict[str, float]:
    """The share of labels that a linear classifier of features gets right, on training and on test images."""
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)).fit(data.X, data.y)
    return {"training": float(probe.score(data.X, data.y)), "test": float(probe.score(data.X_test, data.y_test))}


RANDOM: dict[str, Any] = {"calibration": 0.0, "embedding": "random", "embedding_size": 10}
ROWS = {
    "Gaussian of features, apart": OfFeatures(SeparateGaussianDetector(calibration=0.0)),
    "flow of features, apart": OfFeatures(SeparateFlowDetector(calibration=0.0)),
    "ratio of features, apart": OfFeatures(SeparateRatioDetector(calibration=0.0)),
    "Deep SVDD, apart": Contender(EntitySVDDDetector(**PAPER)),
    "CSI, small": Contender(EntityContrastiveDetector(**PAPER)),
    "ratio, apart": Contender(SeparateRatioDetector(**PAPER)),
    "Gaussian of features, together": OfFeatures(EntityGaussianDetector(**RANDOM)),
    "flow of features, together": OfFeatures(EntityFlowDetector(condition="affine", lr=3e-3, **RANDOM)),
    "flow of features, own vectors, together": OfFeatures(EntityFlowDetector(condition="own", lr=3e-3, **RANDOM)),
    "ratio of features, together": OfFeatures(
        RatioDetector(head="concat", embedding_decay=0.0, embedding_lr_factor=1.0, **RANDOM)
    ),
    "ratio, together": Contender(RatioDetector(embedding_lr_factor=1.0, **CONCAT | RANDOM)),
    "two towers, together": Contender(RatioDetector(**TOWERS | RANDOM)),
}
PRINTED = {
    "Gaussian of features, apart": (93.92, 66.45, 60.90, 54.60),
    "flow of features, apart": (91.96, 90.76, 83.77, 79.40),
    "ratio of features, apart": (99.58, 98.57, 97.61, 95.67),
    "Deep SVDD, apart": (64.81, 52.43, 51.43, 50.68),
    "CSI, small": (94.28, 62.53, 55.78, 53.78),
    "ratio, apart": (96.05, 84.26, 74.35, 68.05),
    "Gaussian of features, together": (75.76, 62.52, 58.21, 56.10),
    "flow of features, together": (92.04, 82.25, 80.54, 61.56),
    "ratio of features, together": (99.41, 98.97, 98.25, 97.46),
    "ratio, together": (95.97, 93.07, 87.13, 78.96),
}
TABLES = (
    Table(
        name="collaborative-cifar10-apart",
        source=f"{SOURCE}, table 2",
        caption="CIFAR-10: one model per task (apart), and one model for all tasks (together).",
        rows=ROWS,
        columns=tuple(column(k) for k in KINDS),
        metrics=("auroc",),
        measure=measure,
        seeds={"cpu": range(2), "paper": range(3)},
        profiles={"cpu": CPU, "paper": AUGMENTED},
        printed={
            (row, column(k), "auroc"): value
            for row, values in PRINTED.items()
            for k, value in zip(KINDS, values, strict=True)
        },
        needs=("cifar10",),
        notes=NOTES
        + SMALLER
        + " `own vectors`: each task has its own scales and biases, as in appendix B.2; in the row before they are a "
        "linear map of ten numbers. `of features`: 128 features of each image, by convolutions that learnt by contrast "
        "(two views of an image, and of the image turned upside down) from the training images, in eight passes. "
        "The paper's come from a ResNet-18; how much of the labels a linear classifier finds in them is in "
        "`collaborative-cifar10-features`. Detectors of features take twenty passes; those that learn together fewer "
        "if the loss on a tenth of the exposures does not fall any more. The step size of the flow, 3e-3 together, "
        "and its passes were chosen on MNIST. CSI shares one small encoder among all tasks. For learning together the "
        "paper's table 2 has the numbers that its table 3 has for random embeddings and one more active class.",
        higher_is_better={"auroc": True},
        formats={"auroc": ".2%"},
    ),
    Table(
        name="collaborative-cifar10-features",
        source=f"{SOURCE}, appendix B.1",
        caption="CIFAR-10: labels that a linear classifier finds in the features of table 2.",
        rows={"contrastive features": {"conv_channels": FEATURES_OF, "epochs": FEATURE_EPOCHS}},
        columns=("CIFAR-10",),
        metrics=("training", "test"),
        measure=measure_features,
        seeds={"cpu": range(2), "paper": range(3)},
        profiles={"cpu": {}, "paper": {}},
        printed={("contrastive features", "CIFAR-10", "training"): 90.2},
        needs=("cifar10",),
        notes="Table 2 has the features of seed 0. The paper states the training "
        "accuracy, of features of a ResNet-18; ours come from four small convolutions after eight passes." + SMALLER,
        higher_is_better={"training": True, "test": True},
        formats={"training": ".1%", "test": ".1%"},
    ),
)
