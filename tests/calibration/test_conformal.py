"""Thresholds and p-values against counting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from offmap.calibration import CalibrationWarning, hold_out, p_values, random_p_values, threshold
from offmap.calibration.split import expected_sizes

# Few distinct values, so that ties are common.
scores = hnp.arrays(np.float64, st.integers(1, 60), elements=st.integers(-3, 6).map(float))


@settings(deadline=None)
@given(scores, scores)
def test_p_values_count_the_rows_at_least_as_novel(calibration: np.ndarray, novelty: np.ndarray) -> None:
    counted = [(1 + sum(c >= s for c in calibration)) / (len(calibration) + 1) for s in novelty]
    np.testing.assert_allclose(p_values(np.sort(calibration), novelty), counted)


@settings(deadline=None)
@given(scores, scores, st.sampled_from([0.05, 0.1, 0.2, 0.25, 0.5, 0.9]))
@pytest.mark.filterwarnings("ignore::offmap.calibration.CalibrationWarning")
def test_above_the_threshold_is_a_p_value_of_at_most_alpha(
    calibration: np.ndarray, novelty: np.ndarray, alpha: float
) -> None:
    if len(calibration) + 1 < 1 / alpha:
        return
    flagged = novelty > threshold(np.sort(calibration), alpha)
    counted = [1 + sum(c >= s for c in calibration) for s in novelty]
    assert (flagged == (np.array(counted) <= alpha * (len(calibration) + 1) + 1e-9)).all()


@pytest.mark.parametrize("levels", [2, 10**6], ids=["ties", "no ties"])
def test_random_p_values_attain_every_rate(levels: int) -> None:
    rng = np.random.default_rng(0)
    drawn = rng.integers(levels, size=(20_000, 10)).astype(float)
    p = np.concatenate([random_p_values(np.sort(rows[:9]), rows[9:], rng) for rows in drawn])
    for alpha in (0.03, 0.05, 0.5):
        assert (p <= alpha).mean() == pytest.approx(alpha, abs=0.012)


def test_nineteen_rows_are_just_enough_for_five_percent() -> None:
    assert threshold(np.arange(19.0), 0.05) == 18
    with pytest.warns(CalibrationWarning, match=r"the rate is up to 0\.053"):
        assert threshold(np.arange(18.0), 0.05) == 17


@settings(deadline=None)
@given(hnp.arrays(np.int64, st.integers(2, 80), elements=st.integers(0, 5)), st.floats(0.05, 0.95), st.integers(0, 9))
def test_hold_out_is_a_partition_that_keeps_every_class_in_training(
    groups: np.ndarray, fraction: float, seed: int
) -> None:
    train, held_out = hold_out(groups, fraction, np.random.default_rng(seed))
    assert sorted([*train, *held_out]) == list(range(len(groups)))
    assert set(groups[train]) == set(groups)
    free = sum(np.bincount(groups)[groups] > 1)
    assert (len(held_out) > 0) == (free > 0)
    # A group that would lose all its rows keeps one.
    left = np.bincount(groups[train], minlength=6)
    kept = np.count_nonzero((left == 1) & (np.bincount(groups, minlength=6) > 1))
    wanted = min(max(1, round(fraction * free)), free)
    assert wanted - kept <= len(held_out) <= wanted


def test_the_held_out_rows_of_a_group_are_independent_of_its_training_rows() -> None:
    shares = 1 / np.arange(1, 41)
    counts = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        groups = rng.choice(40, size=1000, p=shares / shares.sum())
        counts.append([np.bincount(groups[rows], minlength=40) for rows in hold_out(groups, 0.3, rng)])
    train, held_out = np.moveaxis(np.array(counts), 1, 0)
    assert held_out.sum(axis=1).mean() == pytest.approx(300, abs=3)
    together = np.mean([np.corrcoef(train[:, group], held_out[:, group])[0, 1] for group in range(40)])
    # In a sample of independent rows the two numbers are independent; one correlation has a deviation of 0.08. A split
    # that takes the same share of each group has correlations above 0.7.
    assert abs(together) < 0.06


def test_rare_groups_keep_the_rate_if_their_rows_look_the_more_novel_the_fewer_were_trained_on() -> None:
    """Rows held out evenly of each group have a rate of 0.067 here, those drawn irrespective of it one of 0.051."""
    rates, shares = [], 1 / np.arange(1, 41)
    for seed in range(100):
        rng = np.random.default_rng(seed)
        groups, later = (rng.choice(40, size=size, p=shares / shares.sum()) for size in (1000, 2000))
        train, held_out = hold_out(groups, 0.3, rng)
        trained = np.bincount(groups[train], minlength=40)
        later = later[np.bincount(groups, minlength=40)[later] > 1]
        known, new = (rng.uniform(size=len(rows)) - trained[rows] for rows in (groups[held_out], later))
        rates.append((new > threshold(np.sort(known), 0.05)).mean())
    assert 0.044 < np.mean(rates) < 0.058


def test_every_row_of_a_group_with_others_is_held_out_equally_often() -> None:
    groups = np.repeat([0, 1, 2, 3], [1, 2, 3, 34])
    times = np.zeros(len(groups))
    for seed in range(4000):
        _, held_out = hold_out(groups, 0.1, np.random.default_rng(seed))
        times[held_out] += 1
    assert times[0] == 0
    # 400 times on average, with a standard deviation of 19.
    assert np.abs(times[1:] - 4000 * 4 / 39).max() < 80


@settings(deadline=None)
@given(hnp.arrays(np.int64, st.integers(2, 80), elements=st.integers(0, 9)), st.integers(0, 9))
def test_where_the_score_depends_on_it_all_groups_lose_as_many_rows(groups: np.ndarray, seed: int) -> None:
    train, held_out = hold_out(groups, 0.1, np.random.default_rng(seed), from_every_group=True)
    before, after = np.bincount(groups, minlength=10), np.bincount(groups[train], minlength=10)
    assert (after[before > 1] < before[before > 1]).all()
    assert (after[before > 0] > 0).all()
    assert not set(train) & set(held_out)


@pytest.mark.parametrize(("spread", "low", "high"), [(0.0, 0.04, 0.0525), (1.0, 0.036, 0.0525)])
def test_groups_of_random_sizes_keep_the_rate(spread: float, low: float, high: float) -> None:
    """The novelty is the distance to the mean of a group's training rows, which few rows make worse.

    To calibrate with each group in proportion to its rows in this sample has a rate of 0.056 with a spread of 0.
    """
    rates = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        share = rng.lognormal(0, spread, size=150)
        sizes = rng.poisson(6 * share / share.mean())
        groups = np.repeat(np.arange(150), sizes)
        X = rng.normal(size=(len(groups), 3))
        train, held_out = hold_out(np.unique(groups, return_inverse=True)[1], 0.2, rng, from_every_group=True)
        count = np.maximum(np.bincount(groups[train], minlength=150), 1)
        means = np.stack([np.bincount(groups[train], X[train, j], minlength=150) for j in range(3)], axis=1)
        known = np.where(sizes > 1, share, 0.0)
        later = rng.choice(150, size=1000, p=known / known.sum())
        novelty = [
            np.linalg.norm(rows - (means / count[:, None])[places], axis=1)
            for rows, places in ((X[held_out], groups[held_out]), (rng.normal(size=(1000, 3)), later))
        ]
        rates.append((novelty[1] > threshold(np.sort(novelty[0]), 0.05)).mean())
    assert low < np.mean(rates) < high


def test_expected_sizes_keep_the_sum_and_shrink_what_counting_explains() -> None:
    rng = np.random.default_rng(0)
    share = rng.gamma(2.0, 3.0, size=20_000)
    first, second = rng.poisson(share), rng.poisson(share)
    found = expected_sizes(first)
    assert found.sum() == pytest.approx(first.sum())
    # The mean of a second sample over groups of one size in the first is what is guessed from the first alone.
    for size in (1, 4, 9, 14):
        assert second[first == size].mean() == pytest.approx(found[first == size][0], abs=0.35)
