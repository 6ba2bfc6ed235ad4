"""The rate of false alarms that is suggested for unlabelled rows."""

from math import log

import numpy as np
import pytest
from scipy.stats import norm

from offmap import Calibrated, Guarded
from offmap.calibration import suggest_rate

SHIFT = 3.0


def first_column(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows)[:, 0]


def stream(rows: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal rows, a share of them shifted, and which ones these are."""
    rng = np.random.default_rng(seed)
    novel = rng.random(rows) < share
    return rng.normal(size=(rows, 1)) + SHIFT * novel[:, None], novel


def fitted(rows: int = 4000, confidence: float | None = None) -> Calibrated:
    return Calibrated(first_column, confidence=confidence).calibrate(np.random.default_rng(9).normal(size=(rows, 1)))


@pytest.mark.parametrize(("share", "cost"), [(0.1, 1.0), (0.3, 1.0), (0.6, 1.0), (0.3, 5.0)])
def test_the_threshold_is_where_both_densities_weigh_as_much(share: float, cost: float) -> None:
    """Two normal densities a shift apart: cost · (1 - share) · φ(t) = share · φ(t - shift)."""
    wanted = SHIFT / 2 + log(cost * (1 - share) / share) / SHIFT
    X, _ = stream(20_000, share, seed=1)
    found = fitted().suggest_alpha(X, false_alarm_cost=cost)
    assert norm.isf(found.alpha) == pytest.approx(wanted, abs=0.35)
    assert found.novel_share == pytest.approx(share, abs=0.04)


def test_what_is_to_be_expected_is_what_happens() -> None:
    X, novel = stream(20_000, 0.3, seed=2)
    model = fitted()
    found = model.suggest_alpha(X)
    flagged = model.at(alpha=found.alpha).assess(X).novel
    assert found.precision == pytest.approx(novel[flagged].mean(), abs=0.03)
    assert found.recall == pytest.approx(flagged[novel].mean(), abs=0.06)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_more_rows_are_right_than_at_any_fixed_rate_but_for_noise(share: float) -> None:
    X, novel = stream(5000, share, seed=3)
    model = fitted(1000)
    right = {
        alpha: float((model.at(alpha=alpha).assess(X).novel == novel).mean())
        for alpha in (0.01, 0.05, 0.12, 0.2, model.suggest_alpha(X).alpha)
    }
    assert right.popitem()[1] > max(right.values()) - 0.01


def test_no_novel_row_asks_for_no_more_than_a_few_false_alarms() -> None:
    X, _ = stream(5000, 0.0, seed=4)
    found = fitted().suggest_alpha(X)
    assert found.alpha < 0.01
    assert found.novel_share < 0.05


def test_rows_without_a_single_small_p_value() -> None:
    found = suggest_rate(np.linspace(0.6, 1, 50))
    assert found.novel_share == 0
    assert np.isnan(found.precision)
    assert "no row seems to be novel" in str(found)


def test_the_smallest_rate_that_can_be_kept_is_suggested_if_no_row_seems_to_be_novel() -> None:
    model = fitted(199)
    found = model.suggest_alpha(np.full((50, 1), np.median(model.calibration_novelty_)))
    assert found.novel_share == 0
    assert found.alpha == 1 / 200
    assert "every alarm would be false; the smallest alpha is 0.005" in str(found)
    assert model.at(alpha=found.alpha).threshold_ == model.calibration_novelty_[-1]


def test_only_novel_rows() -> None:
    found = suggest_rate(np.full(50, 0.01))
    assert found == (0.01, 1.0, 1.0, 1.0)


def test_a_confidence_does_not_change_the_share_of_novel_rows() -> None:
    X, _ = stream(4000, 0.3, seed=5)
    assert fitted(confidence=0.9).suggest_alpha(X) == fitted().suggest_alpha(X)


def test_folds_and_classes_have_a_suggestion_too() -> None:
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    X, y = load_iris(return_X_y=True)
    model = Guarded(
        LogisticRegression(max_iter=500),
        novelty_score="mahalanobis",
        calibration="cv",
        by_class="predicted",
        random_state=0,
    )
    found = model.fit(X, y).suggest_alpha(np.concatenate([X, X + 20]))
    assert found.novel_share == pytest.approx(0.5, abs=0.1)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="false_alarm_cost must be a number above 0"):
        fitted().suggest_alpha(np.zeros((5, 1)), false_alarm_cost=0)
    with pytest.raises(ValueError, match="p_value must hold at least one row"):
        suggest_rate(np.zeros(0))


@pytest.mark.parametrize("held_out", [99, 180, 613])
def test_the_rate_in_words_flags_what_the_rate_itself_flags(held_out: int) -> None:
    p_value = np.concatenate([np.full(40, 1 / (held_out + 1)), np.linspace(0.1, 1, 60)])
    found = suggest_rate(p_value)
    told = float(str(found).split(":")[0].removeprefix("alpha = "))
    assert found.alpha == 1 / (held_out + 1)
    assert found.alpha <= told < 1.01 * found.alpha
