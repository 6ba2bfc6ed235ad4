"""Columns that follow from others: what auto leaves out, and what it says where the truth is infinite."""

import numpy as np
import pytest

from offmap.dependence import gaussian, mutual_information, total_correlation
from offmap.dependence.covariance import redundant_columns
from tests.dependence.gaussians import Array, information, pairs


def sources(rows: int, count: int) -> Array:
    return np.random.default_rng(0).normal(size=(count, rows, 1))


@pytest.mark.parametrize("rows", [400, 700])
def test_auto_leaves_out_columns_that_follow_from_others_of_their_variable(rows: int) -> None:
    x, y = pairs(rows, 2, 0.7)
    doubled = np.hstack([x, 1.8 * x[:, :1] + 32])
    alone, found = (mutual_information(one, y, random_state=0) for one in (x, doubled))
    assert found.value == pytest.approx(alone.value, abs=0.05)
    assert found.value == pytest.approx(information(2, 0.7), abs=0.15)
    assert found.reason == f"{alone.reason}; without x[:, 2], which follows from other columns"


@pytest.mark.parametrize("rows", [400, 700])
def test_auto_goes_to_neighbours_where_few_columns_are_left(rows: int) -> None:
    x, noise, other = sources(rows, 3)
    found = mutual_information(np.hstack([x, 1.8 * x + 32, other]), x + noise, random_state=0)
    assert found.estimator == "ksg"
    assert found.value == pytest.approx(0.5 * np.log(2), abs=0.12)


@pytest.mark.parametrize("rows", [400, 700])
def test_auto_says_where_the_truth_is_infinite(rows: int) -> None:
    x, y, other, more = sources(rows, 4)
    found = mutual_information(np.hstack([x, y]), np.hstack([other, more, x]), random_state=0)
    assert found.estimator == "ksg"
    assert "the true value is infinite, as y[:, 2] follows from other columns" in found.reason
    total = total_correlation(np.hstack([x, x, other, y]), random_state=0)
    assert "the true value is infinite, as variables[:, 1] follows from other columns" in total.reason


def test_columns_that_follow_from_others_of_their_variable_leave_the_truth_finite() -> None:
    x, other = sources(300, 2)
    assert mutual_information(np.hstack([x, x]), other, random_state=0).reason == "3 columns"


def test_constant_columns_do_not_shift_the_names_of_others() -> None:
    x, y, other, more = sources(300, 4)
    found = mutual_information(np.hstack([np.ones_like(x), x, y, x]), np.hstack([other, more]), random_state=0)
    assert "without x[:, 3]," in found.reason


def test_redundant_columns_are_found_at_any_scale() -> None:
    x, y, other = sources(100, 3)
    assert redundant_columns(np.hstack([1e-9 * x, 1e9 * y + 1e10, other, x + y, 1e6 * other])) == [3, 4]
    assert redundant_columns(np.hstack([x, x + 1e-3 * y])) == []


def test_the_gaussian_estimate_does_not_see_scales_that_differ_by_far() -> None:
    x, noise = np.random.default_rng(0).normal(size=(2, 500))
    y = x + noise
    assert gaussian(1e-6 * x, 1e6 * y + 1e9) == pytest.approx(gaussian(x, y), abs=1e-6)
    with pytest.raises(ValueError, match="linear combination"):
        gaussian(1e-6 * x, 1e6 * x)
