"""Rows selected at a false-discovery rate: how many are false, and how many novel rows are found."""

import warnings

import numpy as np
from numpy.typing import NDArray

from offmap import Calibrated
from offmap.calibration import CalibrationWarning
from offmap_bench.saffron import saffron
from offmap_bench.table import Table

Rows = NDArray[np.float64]


def measure(row: dict[str, float], column: str, seed: int) -> dict[str, float]:
    """Selects rows of a window in which 5 % are novel, shifted by so many standard deviations."""
    rng = np.random.default_rng(seed)
    rows, shift = int(row["rows"]), float(column.split()[0])
    false, found = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        for _ in range(100):
            model = Calibrated(_first_column).calibrate(rng.normal(size=(rows, 1)))
            novel = rng.permutation(500) < 25
            stream = rng.normal(size=(500, 1)) + shift * novel[:, None]
            chosen = _one_by_one(model, stream, row) if row.get("saffron") else model.select(stream, fdr=row["fdr"])
            false.append((chosen & ~novel).sum() / max(chosen.sum(), 1))
            found.append((chosen & novel).sum() / 25)
    return {"fdr": float(np.mean(false)), "power": float(np.mean(found))}


def _one_by_one(model: Calibrated, stream: Rows, row: dict[str, float]) -> NDArray[np.bool_]:
    return saffron(model.p_value(stream), row["fdr"])


def _first_column(rows: Rows) -> Rows:
    return rows[:, 0]


SELECTION = Table(
    name="promises-selection",
    source="No paper: a benchmark of this toolkit",
    caption="Rows selected at a false-discovery rate of 0.1 from windows of 500 rows, of which 25 are novel.",
    rows={f"n = {rows}": {"rows": rows, "fdr": 0.1} for rows in (100, 300, 1000, 5000, 20000)}
    | {f"row by row, n = {rows}": {"rows": rows, "fdr": 0.1, "saffron": True} for rows in (1000, 20000)},
    columns=("3 sd", "4 sd", "5 sd"),
    metrics=("fdr", "power"),
    measure=measure,
    seeds={"cpu": range(10), "paper": range(10)},
    profiles={"cpu": {}, "paper": {}},
    notes="One normal feature; novel rows are shifted by so many standard deviations. n is the number of calibration "
    "rows. One run is the mean of 100 windows, each with calibration rows of its own. The last rows decide row by row, "
    "by SAFFRON, which has to start anew in each window.",
    formats={"fdr": ".1%", "power": ".1%"},
    higher_is_better={"power": True},
)
TABLES = (SELECTION,)
