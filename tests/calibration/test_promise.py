"""The part that decides: thresholds, p-values and the rate to expect."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from offmap.calibration import CalibrationWarning, Promise


@given(seed=st.integers(0, 999), n=st.integers(20, 300), alpha=st.sampled_from([0.05, 0.1, 0.3]))
def test_flagged_means_a_p_value_of_at_most_alpha(seed: int, n: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    # Rounded, so that many rows tie with one another and with the threshold.
    calibration, fresh = rng.normal(size=n).round(1), rng.normal(size=200).round(1)
    promise = Promise(alpha=alpha).fit(calibration)
    naive = [(1 + sum(c >= s for c in calibration)) / (n + 1) for s in fresh]
    np.testing.assert_allclose(promise.p_value(fresh), naive)
    assert (promise.novel(fresh) == (np.array(naive) <= alpha + 1e-12)).all()


def test_a_row_at_the_threshold_is_not_flagged() -> None:
    promise = Promise(alpha=0.1).fit(np.arange(1.0, 20.0))
    assert promise.threshold_ == 18.0
    assert promise.novel([17.9, 18.0, 18.1]).tolist() == [False, False, True]


def test_the_rate_of_a_calibrated_threshold_lies_in_its_interval_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    held = []
    for _ in range(1000):
        promise = Promise(alpha=0.1).fit(rng.uniform(size=199))
        interval = promise.false_alarm_rate
        assert interval is not None
        held.append(interval.low <= 1 - promise.threshold_ <= interval.high)
        assert interval.rate == pytest.approx(0.1)
    assert 0.93 < np.mean(held) < 0.97


@pytest.mark.parametrize("above", [0, 3, 50])
def test_the_rate_of_an_own_threshold_is_measured(above: int) -> None:
    promise = Promise(own_threshold=0.0).fit(np.r_[np.full(above, 1.0), np.full(50 - above, -1.0)])
    found, exact = promise.false_alarm_rate, binomtest(above, 50).proportion_ci(method="exact")
    assert found is not None
    assert (promise.rate, promise.threshold_, found.rate, found.rows) == (None, 0.0, above / 50, 50)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_without_held_out_rows_nothing_is_promised() -> None:
    promise = Promise().fit([])
    assert (promise.threshold_, promise.rate, promise.false_alarm_rate) == (np.inf, None, None)
    with pytest.raises(ValueError, match="p_value needs held-out rows"):
        promise.p_value([1.0])


def test_the_warning_points_at_the_line_that_asked() -> None:
    with pytest.warns(CalibrationWarning) as caught:
        Promise(alpha=0.05).fit([1.0, 2.0])
    assert caught[0].filename == __file__


def test_the_interval_of_the_rate_has_a_closed_form_below_the_largest_row() -> None:
    """No held-out row lies above the threshold, and the rate is Beta(1, 19)."""
    found = Promise(alpha=0.05).fit(np.arange(19.0)).false_alarm_rate
    assert found is not None
    assert [found.low, found.high] == pytest.approx([1 - 0.975 ** (1 / 19), 1 - 0.025 ** (1 / 19)])


def test_another_rate_keeps_the_confidence() -> None:
    novelty = np.random.default_rng(0).normal(size=500)
    sure = Promise(alpha=0.05, confidence=0.9).fit(novelty)
    assert sure.at(0.1).threshold_ == Promise(alpha=0.1, confidence=0.9).fit(novelty).threshold_
    assert sure.at(0.1).threshold_ > Promise(alpha=0.1).fit(novelty).threshold_
