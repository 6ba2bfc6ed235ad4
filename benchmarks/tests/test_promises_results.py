"""The stored rates of false alarms against what the promises allow, with the noise of 100 splits."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.stats import betabinom

from offmap.calibration.conditional import rows_above
from offmap_bench.places import RESULTS
from offmap_bench.samples import read_samples
from offmap_bench.tables.promises import ADBENCH, MOST, PROMISES, RATES, SETS, SIZES, split

SAMPLES, _ = read_samples(RATES, "cpu", RESULTS)
# Standard errors that one of 143 cells may lie above what is expected; chance passes them in one of 200 tables.
ERRORS = 4.0
RUNS = 100


def mean(row: str, name: str, metric: str) -> float:
    sample = SAMPLES[row, name, metric]
    assert len(sample.values) * 10 == RUNS, f"{row} on {name} was not run for {RUNS} splits"
    return sample.mean


def cells(promise: str) -> Iterator[tuple[str, str]]:
    """Rows and columns of a promise. PyOD's ECOD depends on the batch: no promise covers it."""
    rows = [row for row in RATES.rows if row.endswith(f", {promise}") and "ECOD" not in row]
    return ((row, name) for row in rows for name in SETS)


def alarms(name: str, promise: str, rate: float) -> Any:
    """How many fresh rows one model flags; few rows that calibrate have a larger rate than was asked for."""
    fitted, fresh = sizes(name)
    n = round(PROMISES[promise]["calibration"] * fitted)
    above = max(rows_above(n, rate + 1e-9, PROMISES[promise].get("confidence")), 0)
    return betabinom(fresh, above + 1, n - above)


def sizes(name: str) -> tuple[int, int]:
    """Rows that are fitted and fresh rows; sets that do not come with scikit-learn are large enough for the most."""
    if name in (*ADBENCH, "BANKING features"):
        return SIZES[0], MOST
    fitted, fresh, _, _ = split(name, 0)
    return len(fitted), len(fresh)


def test_split_rates_are_at_most_the_promised_one() -> None:
    for row, name in cells("split"):
        rate, found = mean(row, name, "promised"), mean(row, name, "rate")
        one = alarms(name, "split", rate)
        error = one.std() / one.args[0] / np.sqrt(RUNS)
        assert found < max(rate, one.mean() / one.args[0]) + ERRORS * error, (row, name, found)
        assert found > 0.035, (row, name, found)


def test_rates_of_folds_are_at_most_six_percent() -> None:
    for row, name in cells("CV+"):
        assert mean(row, name, "rate") < 0.06, (row, name)


def test_one_model_in_ten_exceeds_its_rate_apart_from_the_noise_of_fresh_rows() -> None:
    scores = []
    for row, name in cells("confidence 0.9"):
        rate, found = mean(row, name, "promised"), mean(row, name, "exceeded")
        one = alarms(name, "confidence 0.9", rate)
        expected = one.sf(np.floor(rate * one.args[0] + 1e-9))
        assert 0.09 < expected < 0.14
        scores.append((found - expected) / np.sqrt(expected * (1 - expected) / RUNS))
    assert max(scores) < ERRORS
    assert np.mean(scores) == pytest.approx(0, abs=0.3)
