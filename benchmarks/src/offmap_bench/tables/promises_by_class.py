"""Rates of false alarms of single classes, with one threshold for all and with one per class."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from offmap.openset import LOFClassifier, MSPClassifier
from offmap_bench.table import Table
from offmap_bench.tables.promises import ALPHA, Promised, prepared, split

SPLITS = 100
KINDS: dict[str, dict[str, Any]] = {
    "by class": {"calibration": 0.5, "by_class": True},
    "by class, CV+": {"calibration": "cv", "by_class": True},
    "all classes": {"calibration": 0.5},
}
# The set of each column, and the share of its rows that is fitted.
COLUMNS = {
    "breast cancer": ("breast cancer", 1 / 2),
    "digits": ("digits", 1 / 2),
    "digits, 120 rows per class": ("digits", 2 / 3),
}
CLASSIFIERS = {
    "MSPClassifier": MSPClassifier(epochs=10),
    "LOFClassifier": LOFClassifier(epochs=10),
    "Guarded LogisticRegression": LogisticRegression(max_iter=300),
    "Guarded RandomForest": RandomForestClassifier(50),
}


def measure(row: Promised, name: str, seed: int) -> dict[str, float]:
    """The rates of the classes, each over the fresh rows of all splits together."""
    named, true, novel = (np.concatenate(part) for part in zip(*_splits(row, name, seed), strict=True))
    by_name, by_class = _rates(named, novel), _rates(true, novel)
    return {
        "lowest, named": min(by_name),
        "highest, named": max(by_name),
        "lowest, true": min(by_class),
        "highest, true": max(by_class),
        "all rows": float(novel.mean()),
    }


def _splits(row: Promised, name: str, seed: int) -> list[tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]]:
    """Named class, true class and decision of the fresh rows of each split."""
    found, (source, share) = [], COLUMNS[name]
    for split_seed in range(SPLITS * seed, SPLITS * (seed + 1)):
        X, fresh, y, true = split(source, split_seed, int(share * len(prepared(source)[0])))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdict = row.make(split_seed).fit(X, y).assess(fresh)
        found.append((verdict.closest, true, verdict.novel))
    return found


def _rates(groups: NDArray[Any], novel: NDArray[np.bool_]) -> list[float]:
    return [float(novel[groups == name].mean()) for name in np.unique(groups)]


BY_CLASS = Table(
    name="promises-by-class",
    source="Of our own",
    caption=f"Rates of false alarms of single classes, at a promised rate of {ALPHA}.",
    rows={
        f"{name}, {kind}": Promised(method, promise)
        for kind, promise in KINDS.items()
        for name, method in CLASSIFIERS.items()
    },
    columns=tuple(COLUMNS),
    metrics=("lowest, named", "highest, named", "lowest, true", "highest, true", "all rows"),
    measure=measure,
    seeds={"cpu": range(1)},
    profiles={"cpu": {}},
    notes="Rates over the fresh rows of 100 splits of which half are fitted, in the last column two thirds, so that "
    "each class has 85 fitted rows or more. `named`: among the rows that the model names as one class, for which "
    "`by_class=True` promises the rate. `true`: among the rows that are of one class, for which the rate follows as "
    "far as they are named rightly. With `by class` and `all classes` half of the fitted rows calibrate: the 45 of a "
    "digit attain 0.043 at 0.05, the 60 of the last column 0.049.",
    formats={metric: ".1%" for metric in ("lowest, named", "highest, named", "lowest, true", "highest, true")}
    | {"all rows": ".1%"},
)
TABLES = (BY_CLASS,)
