"""Another rate, other rows and the top of the list, after the fit."""

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression

from offmap import Calibrated, Guarded, load
from offmap.calibration import Budget, CalibrationWarning
from offmap.collaborative import EntityGaussianDetector
from offmap.density import NearestNeighborDetector
from offmap.openset import MSPClassifier
from offmap.verdict import Verdict

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(1200, 3)), RNG.integers(3, size=1200)


def fitted() -> list[Any]:
    return [
        NearestNeighborDetector(calibration=0.3, random_state=0).fit(X[:600]),
        MSPClassifier(calibration=0.3, epochs=2, random_state=0).fit(X[:600], Y[:600]),
        Calibrated(IsolationForest(n_estimators=20), random_state=0).fit(X[:600]),
        Guarded(LogisticRegression(), random_state=0).fit(X[:600], Y[:600]),
    ]


@pytest.mark.parametrize("model", fitted(), ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("rate", [0.01, 0.2])
def test_another_rate_is_the_model_fitted_with_that_rate(model: Any, rate: float) -> None:
    moved = model.at(alpha=rate)
    fresh = X[600:]
    assert (moved.alpha, moved.promised_rate, model.alpha) == (rate, rate, 0.05)
    assert (moved.assess(fresh).novel == (model.p_value(fresh) <= rate + 1e-12)).all()
    assert (moved.p_value(fresh) == model.p_value(fresh)).all()
    assert model.at(budget=Budget(rate * 500, per=500)).threshold_ == moved.threshold_
    assert model.at(budget=rate).threshold_ == moved.threshold_


@pytest.mark.parametrize("model", fitted(), ids=lambda model: type(model).__name__)
def test_recalibrated_on_rows_of_another_source_the_rate_holds_there(model: Any) -> None:
    shifted = X[600:] * 1.5
    before = model.assess(shifted[300:]).novel.mean()
    after = model.recalibrate(shifted[:300])
    assert len(after.calibration_novelty_) == 300
    assert after.assess(shifted[300:]).novel.mean() == pytest.approx(0.05, abs=0.04)
    assert model.assess(shifted[300:]).novel.mean() == before


def test_a_moved_threshold_is_saved(tmp_path: Any) -> None:
    model = NearestNeighborDetector(calibration=0.3, random_state=0).fit(X[:600]).at(alpha=0.2)
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert (again.alpha, again.threshold_) == (0.2, model.threshold_)


def test_an_own_rule_becomes_a_calibrated_one() -> None:
    own = MSPClassifier(rule="own", calibration=0.3, epochs=2, random_state=0).fit(X[:600], Y[:600])
    moved = own.at(alpha=0.1)
    assert (own.promised_rate, moved.promised_rate, moved.rule) == (None, 0.1, "calibrated")
    assert own.recalibrate(X[600:]).promised_rate == 0.05
    bare = MSPClassifier(rule="own", calibration=0, epochs=2, random_state=0).fit(X[:600], Y[:600])
    with pytest.raises(ValueError, match="at needs held-out rows"):
        bare.at(alpha=0.1)


def test_entities_are_recalibrated_with_their_rows() -> None:
    model = EntityGaussianDetector(random_state=0).fit(X[:600], Y[:600])
    moved = model.recalibrate(X[600:], Y[600:])
    assert len(moved.calibration_novelty_) == 600
    assert moved.at(alpha=0.2).predict(X[:600], Y[:600]).mean() < 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give either alpha or budget"),
        ({"alpha": 0.1, "budget": 0.1}, "give either alpha or budget"),
        ({"alpha": 1.5}, "alpha must be a number between 0 and 1"),
        ({"budget": 50}, "budget must be a number between 0 and 1"),
    ],
)
def test_a_rate_that_is_none_is_named(arguments: Any, message: str) -> None:
    model = fitted()[0]
    with pytest.raises(ValueError, match=message):
        model.at(**arguments)


def test_a_budget_is_fewer_alerts_than_rows() -> None:
    with pytest.raises(ValueError, match="fewer alerts than rows; got 5 per 5"):
        Budget(5, per=5)


def test_a_rate_that_the_rows_cannot_keep_is_warned_of() -> None:
    with pytest.warns(CalibrationWarning, match=r"cannot promise a false-alarm rate of 0\.001"):
        fitted()[0].at(alpha=0.001)


def test_top_is_the_most_novel_first_and_ties_keep_their_order() -> None:
    novelty = np.array([1.0, 5.0, 3.0, 5.0])
    verdict = Verdict(novelty=novelty, novel=novelty > 4)
    assert verdict.top(3).tolist() == [1, 3, 2]
    assert verdict.top(9).tolist() == [1, 3, 2, 0]
    with pytest.raises(ValueError, match="k must be an integer at least 0"):
        verdict.top(-1)


def test_a_budget_is_alerts_per_row() -> None:
    assert [Budget(50, per=1000).rate, Budget(1, per=8).rate, Budget(0.5).rate] == [0.05, 0.125, 0.0005]
