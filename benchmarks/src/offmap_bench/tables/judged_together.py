"""Where rows judged together are found better, and where they are not."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest

from offmap import Calibrated
from offmap.calibration import CalibrationWarning, assess_together
from offmap.data import hold_out_classes, load
from offmap.density import MahalanobisDetector, NearestNeighborDetector
from offmap.metrics import auroc
from offmap_bench.table import Table
from offmap_bench.tables.tabular_anomalies import split, standardised

NEW_DIGITS, ONE_OF_EACH = "three new digits", "new digits, five rows of each"
ANOMALIES = (
    "cardiotocography",
    "landsat",
    "letter",
    "magic.gamma",
    "pageblocks",
    "satellite",
    "waveform",
    "wilt",
    "yeast",
)
KNOWN = 0.3
FEW = 5
METRICS = ("auroc", "auroc, together", "found", "found, together", "false alarms", "false alarms, together")
Rows = NDArray[Any]


class Batch(NamedTuple):
    """Training rows, known rows that calibrate, rows to judge, and which of these are novel."""

    train: Rows
    known: Rows
    X: Rows
    novel: NDArray[np.bool_]


def batch(column: str, seed: int) -> Batch:
    """Draws the rows of one column."""
    rng = np.random.default_rng(seed)
    if column not in (NEW_DIGITS, ONE_OF_EACH):
        training, normal, anomalies = standardised(*split(column, seed, 2000))
        rest, known = np.split(rng.permutation(training), [round((1 - KNOWN) * len(training))])
        return Batch(
            rest, known, np.concatenate([normal, anomalies]), np.arange(len(normal) + len(anomalies)) >= len(normal)
        )
    digits = load("digits")
    assert digits.y is not None
    drawn = hold_out_classes(
        digits.X.reshape(len(digits.X), -1), digits.y, rng.permutation(10)[:7], test_size=0.4, seed=seed
    )
    rest, known = np.split(rng.permutation(drawn.X_train), [round((1 - KNOWN) * len(drawn.X_train))])
    kept = ~drawn.unknown
    for label in np.unique(drawn.y_test[drawn.unknown]):
        kept[np.flatnonzero(drawn.y_test == label)[: FEW if column == ONE_OF_EACH else None]] = True
    return Batch(rest, known, drawn.X_test[kept], drawn.unknown[kept])


def measure(method: Any, column: str, seed: int) -> dict[str, float]:
    """Fits a detector, sets its threshold on known rows, and judges the same rows one by one and together."""
    train, known, X, novel = batch(column, seed)
    with warnings.catch_warnings():
        # The rows that it holds out itself decide nothing here.
        warnings.simplefilter("ignore", CalibrationWarning)
        model = method.set_params(random_state=seed).fit(train)
    found = {}
    for end, verdict in (("", model.recalibrate(known).assess(X)), (", together", assess_together(model, X, known))):
        found["auroc" + end] = auroc(verdict.novelty[~novel], verdict.novelty[novel])
        found["found" + end] = float(verdict.novel[novel].mean())
        found["false alarms" + end] = float(verdict.novel[~novel].mean())
    return found


JUDGED = Table(
    name="judged-together",
    source="No paper: rows judged together",
    caption="New classes and anomalies in tables, found one by one and together, by the same models.",
    rows={
        "nearest neighbour": NearestNeighborDetector(),
        "Mahalanobis": MahalanobisDetector(),
        "isolation forest": Calibrated(IsolationForest()),
    },
    columns=(NEW_DIGITS, ONE_OF_EACH, *ANOMALIES),
    metrics=METRICS,
    measure=measure,
    seeds={"cpu": range(5)},
    profiles={"cpu": {}},
    needs=tuple(f"adbench/{name}" for name in ANOMALIES),
    notes="`assess_together` with its defaults beside `assess`, at a promised rate of 5 %. Three tenths of the training"
    " rows calibrate both. Digits: seven of the ten digits are known, drawn anew for each seed; all rows of the "
    "other three are among the rows to judge, or five of each. Tables of ADBench: 70 % of the normal rows are for"
    " training, the other normal rows and all anomalies are judged, at most 2,000 of each. Found is the share of "
    "novel rows that are flagged.",
    higher_is_better={"auroc": True, "auroc, together": True, "found": True, "found, together": True},
    formats=dict.fromkeys(METRICS, ".1%"),
    average=True,
)
TABLES = (JUDGED,)
