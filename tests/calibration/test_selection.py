"""Selecting rows with a bounded share of false alarms."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offmap import Calibrated
from offmap.calibration import CalibrationWarning, rows_needed_to_select, select_rows


def naive(p: np.ndarray, fdr: float) -> np.ndarray:
    """Benjamini and Hochberg: all up to the last of the ordered p-values that is at most fdr * rank / rows."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    passing = [rank for rank, i in enumerate(order, 1) if p[i] <= fdr * rank / len(p) * (1 + 1e-12)]
    chosen = set(order[: max(passing, default=0)])
    return np.array([i in chosen for i in range(len(p))])


@settings(deadline=None)
@given(seed=st.integers(0, 999), rows=st.integers(1, 90), window=st.integers(1, 40), fdr=st.sampled_from([0.05, 0.2]))
def test_each_window_is_selected_as_the_procedure_says(seed: int, rows: int, window: int, fdr: float) -> None:
    p = np.random.default_rng(seed).integers(1, 101, size=rows) / 1000
    wanted = np.concatenate([naive(p[start : start + window], fdr) for start in range(0, rows, window)])
    assert (select_rows(p, fdr, window) == wanted).all()


def test_a_tenth_of_the_selected_rows_are_false_and_most_novel_rows_are_found() -> None:
    rng, false, found = np.random.default_rng(0), [], []
    for _ in range(60):
        model = Calibrated(lambda rows: rows[:, 0]).calibrate(rng.normal(size=(1000, 1)))
        novel = np.arange(500) < 25
        chosen = model.select(rng.normal(size=(500, 1)) + 4 * novel[:, None], fdr=0.1)
        false.append((chosen & ~novel).sum() / max(chosen.sum(), 1))
        found.append((chosen & novel).sum() / 25)
    assert np.mean(false) < 0.12
    assert np.mean(found) > 0.85


def test_too_few_rows_are_told_how_many_would_do() -> None:
    model = Calibrated(lambda rows: rows[:, 0]).calibrate(np.arange(100.0)[:, None])
    with pytest.warns(
        CalibrationWarning, match="100 .* unless 50 of them are novel; 199 .* 25 novel rows, 4999 a single"
    ):
        model.select(np.zeros((500, 1)))
    assert rows_needed_to_select(0.1, 500) == 4999
    with pytest.raises(ValueError, match="fdr must be a number between 0 and 1"):
        model.select(np.zeros((5, 1)), fdr=2)


@pytest.mark.parametrize(("name", "wrong"), [("fdr", 0.0), ("window", 0), ("novel", 0)])
def test_how_many_rows_are_needed_is_asked_with_numbers_that_make_sense(name: str, wrong: float) -> None:
    asked: dict[str, Any] = {"fdr": 0.1, "window": 500, "novel": 25}
    assert rows_needed_to_select(**asked) == 199
    with pytest.raises(ValueError, match=f"{name} must be"):
        rows_needed_to_select(**asked | {name: wrong})


def test_a_few_rows_are_judged_as_a_small_window() -> None:
    """With 150 calibration rows one novel row of ten can be selected, of 500 rows only 34 at once."""
    model = Calibrated(lambda rows: np.asarray(rows)[:, 0]).calibrate(np.arange(150.0)[:, None])
    assert model.select(np.array([[500.0], *[[0.0]] * 9])).tolist() == [True] + [False] * 9
    with pytest.warns(CalibrationWarning, match="from 500 rows unless 34 of them are novel"):
        model.select(np.zeros((600, 1)))
