"""Intervals of nearest-neighbour estimators: how often they hold the truth, and that they leave the value alone."""

import math

import numpy as np
import pytest

from offmap.dependence import mutual_information, total_correlation
from offmap.dependence.interval import count_splits, halves_interval
from offmap.dependence.nearest_neighbors import ksg_pointwise
from offmap.dependence.validation import break_ties, standardise
from tests.dependence.gaussians import information, pairs


@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_the_interval_of_neighbours_holds_the_truth_as_often_as_it_says(correlation: float) -> None:
    truth = information(1, correlation)
    found = [mutual_information(*pairs(100, 1, correlation, seed), "ksg", random_state=0) for seed in range(150)]
    held = np.mean([low <= truth <= high for low, high in (one.interval for one in found)])
    assert 0.9 <= held <= 0.99


def test_the_interval_of_auto_holds_the_truth_as_often_as_it_says() -> None:
    truth = information(1, 0.7)
    found = [mutual_information(*pairs(150, 1, 0.7, seed), random_state=0) for seed in range(100)]
    assert np.mean([low <= truth <= high for low, high in (one.interval for one in found)]) >= 0.9


def test_the_interval_of_a_mean_is_that_of_student() -> None:
    numbers = np.random.default_rng(0).normal(size=400)

    def mean(rows: np.ndarray) -> float:
        return float(numbers[rows].mean())

    ends = [halves_interval(0.0, mean, 400, 20, np.random.default_rng(seed)) for seed in range(50)]
    # The 97.5 % point of Student's distribution with 10 degrees of freedom is 2.228.
    assert np.sqrt(np.mean([high**2 for _, high in ends])) == pytest.approx(2.228 * numbers.std() / 20, rel=0.1)
    assert all(low == -high for low, high in ends)


def test_the_interval_is_not_narrower_than_that_of_independent_rows() -> None:
    low, high = halves_interval(0.0, lambda rows: 1.0, 4, 20, np.random.default_rng(0), least=0.5)
    assert (low, high) == pytest.approx((-1.114, 1.114), abs=1e-3)


def test_fewer_splits_are_made_where_each_takes_long() -> None:
    assert [count_splits(rows * columns**2) for rows, columns in ((100, 2), (5000, 2), (1000, 20))] == [20, 10, 4]


def test_the_value_of_neighbours_is_the_mean_over_all_rows() -> None:
    x, y = pairs(300, 1, 0.6)
    found = mutual_information(x, y, "ksg", n_neighbors=4, random_state=0)
    rng = np.random.default_rng(0)
    rng.integers(2**31)
    variables = break_ties(standardise(["x", "y"], [x, y]), rng)
    assert found.value == ksg_pointwise(variables, n_neighbors=4).mean()


def test_terms_of_several_kinds_share_one_interval() -> None:
    groups = [*pairs(300, 1, 0.8), *pairs(300, 3, 0.2, seed=1)]
    found = total_correlation(groups, random_state=0)
    low, high = found.interval
    assert low < found.value < high
    assert high - low < 0.5
    assert not math.isnan(low)
