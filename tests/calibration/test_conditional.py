"""Rates that hold for this very model."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression

from offmap import Calibrated, Guarded
from offmap.calibration import CalibrationWarning, Promise, conditional_p_values, rows_needed, threshold
from offmap.calibration.conditional import rows_above
from offmap.density import NearestNeighborDetector


@settings(deadline=None)
@given(n=st.integers(1, 400), alpha=st.floats(0.01, 0.5), confidence=st.floats(0.5, 0.99))
def test_the_threshold_is_the_lowest_that_keeps_the_rate(n: int, alpha: float, confidence: float) -> None:
    keeps = [m for m in range(n) if beta.cdf(alpha, m + 1, n - m) >= confidence]
    assert rows_above(n, alpha, confidence) == min(max(keeps, default=-1), max(int((n + 1) * alpha + 1e-9) - 1, 0))
    assert (n >= rows_needed(alpha, confidence)) == (len(keeps) > 0)


def test_nine_of_ten_models_keep_the_rate() -> None:
    rng = np.random.default_rng(0)
    # The true rate of a threshold on uniform scores is what lies above it.
    rates = [1 - Promise(alpha=0.05, confidence=0.9).fit(rng.uniform(size=300)).threshold_ for _ in range(2000)]
    plain = [1 - Promise(alpha=0.05).fit(rng.uniform(size=300)).threshold_ for _ in range(2000)]
    assert 0.03 < np.mean(np.array(rates) > 0.05) < 0.11
    assert np.mean(np.array(plain) > 0.05) > 0.4


def test_the_p_values_hold_at_every_rate_at_once() -> None:
    rng = np.random.default_rng(0)
    n, exceeded = 200, []
    places = conditional_p_values(n, np.arange(1, n + 2) / (n + 1), 0.9)
    for _ in range(1000):
        # With j - 1 held-out rows above it, a row has the j-th p-value; so many rows lie above the j-th largest.
        above = 1 - np.sort(rng.uniform(size=n))[::-1]
        exceeded.append((above > places[:n] + 1e-12).any())
    assert 0.02 < np.mean(exceeded) < 0.125


def test_the_p_values_are_those_of_the_product() -> None:
    n, k, delta = 12, 6, 0.1
    for j in range(1, n + 2):
        i = n + 1 - j
        product = np.prod([(i - step) / (n - step) for step in range(k)]) if i >= k else 0.0
        found = conditional_p_values(n, np.array([j / (n + 1)]), 1 - delta)[0]
        assert found == pytest.approx(max(1 - (delta * product) ** (1 / k), j / (n + 1)) if i >= k else 1.0)


def test_a_small_p_value_means_flagged() -> None:
    promise = Promise(alpha=0.05, confidence=0.9).fit(np.random.default_rng(0).normal(size=500))
    rows = np.random.default_rng(1).normal(size=3000)
    p, novel = promise.p_value(rows), promise.novel(rows)
    assert novel[p <= 0.05].all()
    assert (p >= Promise(alpha=0.05).fit(promise.calibration_novelty_).p_value(rows)).all()
    assert promise.rate == 0.05


def test_too_few_rows_are_told_how_many_are_needed() -> None:
    with pytest.warns(CalibrationWarning, match=r"0\.05 with confidence 0\.9; the rate is up to 0\.051.*45 are needed"):
        assert threshold(np.arange(44.0), 0.05, 0.9) == 43
    assert threshold(np.arange(45.0), 0.05, 0.9) == 44
    with pytest.raises(ValueError, match="confidence must be"):
        rows_needed(0.05, confidence=1.0)


@pytest.mark.parametrize("confidence", [0.01, 0.3, 0.9])
def test_p_values_are_enlarged_at_any_confidence(confidence: float) -> None:
    p = np.arange(1, 102) / 101
    assert (conditional_p_values(100, p, confidence) >= p).all()


@pytest.mark.parametrize(
    "model",
    [
        NearestNeighborDetector(calibration=0.5, confidence=0.9, random_state=0),
        Calibrated(IsolationForest(n_estimators=5), calibration=0.5, confidence=0.9, random_state=0),
        Guarded(LogisticRegression(), calibration=0.5, confidence=0.9, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_kind_of_model_places_its_threshold_by_the_confidence(model: Any) -> None:
    rng = np.random.default_rng(0)
    X, fresh = rng.normal(size=(400, 3)), rng.normal(size=(300, 3))
    model.fit(X, (X[:, 0] > 0).astype(int))
    for fitted in (model, model.recalibrate(fresh)):
        held_out = fitted.calibration_novelty_
        assert fitted.threshold_ == held_out[len(held_out) - 1 - rows_above(len(held_out), 0.05, 0.9)]
        assert fitted.threshold_ > threshold(held_out, 0.05)
        assert "by this very model, with confidence 0.9" in fitted.promise_in_words
