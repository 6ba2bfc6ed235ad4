"""False alarms and delay of the drift monitor, over many streams at once."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from offmap.arrays import FloatArray
from offmap.monitor import Jumper, semi_online_p_values
from offmap_bench.table import Table

RUNS, ROWS, CHANGE, LEVEL, JUMP = 1000, 4000, 1000, 100.0, 0.01


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """How the rows of a stream are ranked.

    Args:
        online: Whether among calibration rows and earlier stream rows; else among the calibration rows alone.
    """

    online: bool

    def p_values(self, calibration: FloatArray, stream: FloatArray, ties: FloatArray) -> FloatArray:
        """The p-value of each row of each run."""
        past = np.sort(calibration)
        if self.online:
            return semi_online_p_values(past, stream, ties)
        return np.stack([_fixed(*run) for run in zip(past, stream, ties, strict=True)])


def _fixed(past: FloatArray, stream: FloatArray, ties: FloatArray) -> FloatArray:
    """Ranks among a fixed set; no two values are equal here."""
    return np.asarray((len(past) - np.searchsorted(past, stream) + ties) / (len(past) + 1), dtype=np.float64)


def first_alarms(ranking: Ranking, calibration: FloatArray, stream: FloatArray, ties: FloatArray) -> FloatArray:
    """The row of the first alarm of each run; infinite if there is none."""
    _, path = Jumper.start(len(stream)).play(ranking.p_values(calibration, stream, ties), JUMP)
    reached = path >= np.log(LEVEL)
    return np.where(reached.any(axis=1), reached.argmax(axis=1), np.inf)


def measure(method: Any, column: str, seed: int) -> dict[str, float]:
    """The share of runs without a change that alarm, and the median delay after a shift of one standard deviation."""
    rng = np.random.default_rng(seed)
    calibration = rng.normal(size=(RUNS, int(column.split()[0].replace(",", ""))))
    stream, ties = rng.normal(size=(RUNS, ROWS)), rng.random((RUNS, ROWS))
    null = first_alarms(method, calibration, stream, ties)
    stream[:, CHANGE:] += 1.0
    changed = first_alarms(method, calibration, stream, ties)
    in_time = changed[changed >= CHANGE]
    return {"false alarms": float(np.isfinite(null).mean()), "median delay": float(np.median(in_time - CHANGE))}


DRIFT = Table(
    name="drift",
    source="No paper: the drift monitor's promise",
    caption="Runs that alarm at level 100 (1 % promised) without a change, and rows until the alarm after one.",
    rows={"semi-online p-values": Ranking(online=True), "fixed calibration set": Ranking(online=False)},
    columns=("100 calibration rows", "500 calibration rows", "2,000 calibration rows"),
    metrics=("false alarms", "median delay"),
    measure=measure,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    higher_is_better={"false alarms": False, "median delay": False},
    formats={"false alarms": ".2%", "median delay": ".0f"},
    notes="Each seed is 1,000 runs of 4,000 standard normal novelties; the change is a shift by one standard deviation "
    "after 1,000 of them, and the delay counts runs that had not alarmed before. Simple jumper, J = 0.01. "
    "`DriftMonitor` uses semi-online p-values; with a fixed calibration set the promise does not hold.",
)
TABLES = (DRIFT,)
