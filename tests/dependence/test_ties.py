"""Columns with values that many rows share: the mixed estimator, what is picked, and who is warned."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import digamma
from scipy.stats import norm

from offmap.dependence import (
    TiesWarning,
    gaussian,
    gaussian_copula,
    kde,
    ksg,
    ksg_improved,
    mixed_ksg,
    mutual_information,
    total_correlation,
)
from offmap.dependence.auto import MIXED
from offmap.dependence.nearest_neighbors import WIDEST_TREE, mixed_ksg_pointwise
from offmap.dependence.registry import CONTINUOUS
from offmap.dependence.ties import has_ties
from tests.dependence.gaussians import information, pairs

Array = NDArray[np.float64]


def labels(rows: int, classes: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, classes, size=rows).astype(float)


def brute_mixed(variables: list[Array], k: int) -> float:
    """The formula of the docstring, row by row."""
    rows, total = len(variables[0]), 0.0
    for i in range(rows):
        apart = [np.abs(variable - variable[i]).max(1) for variable in variables]
        joint = np.max(apart, axis=0)
        radius = np.sort(joint)[k]
        counts = [int((d == 0).sum() if radius == 0 else (d < radius * (1 - 1e-12)).sum()) for d in (joint, *apart)]
        logs = [float(digamma(count)) for count in counts]
        total += logs[0] - sum(logs[1:]) + (len(variables) - 1) * math.log(rows)
    return total / rows


def noisy_coin_information(spread: float) -> float:
    """Information of a coin of 0 and 1 and itself plus Gaussian noise, by integration."""

    def surprise(value: float) -> float:
        density = 0.5 * (norm.pdf(value, 0, spread) + norm.pdf(value, 1, spread))
        return -density * math.log(density)

    return float(quad(surprise, -6, 7)[0]) - 0.5 * math.log(2 * math.pi * math.e * spread**2)


@pytest.mark.parametrize("widths", [(1, 1), (2, 3), (WIDEST_TREE + 1, 2), (1, 2, 1)])
@pytest.mark.parametrize("k", [1, 5])
def test_mixed_neighbours_are_the_formula(widths: tuple[int, ...], k: int) -> None:
    rng = np.random.default_rng(sum(widths))
    common = rng.integers(0, 3, size=(120, 1))
    variables = [common + rng.integers(0, 2, size=(120, width)) * 1.0 for width in widths]
    variables[0] = np.where(rng.random((120, 1)) < 0.5, variables[0], rng.normal(size=variables[0].shape))
    assert mixed_ksg_pointwise(variables, n_neighbors=k).mean() == pytest.approx(brute_mixed(variables, k), abs=1e-9)


@pytest.mark.parametrize("classes", [2, 5])
def test_mixed_neighbours_find_the_entropy_of_a_label(classes: int) -> None:
    label = labels(2000, classes)
    shares = np.bincount(label.astype(int)) / 2000
    plug_in = -float((shares * np.log(shares)).sum())
    # Half a row per class: what the plug-in estimate is too low by.
    assert mixed_ksg(label, label) == pytest.approx(plug_in + classes / 4000, abs=1e-6)
    assert mixed_ksg(label, label) == pytest.approx(math.log(classes), abs=0.01)


def test_mixed_neighbours_find_nothing_between_independent_labels() -> None:
    assert mixed_ksg(labels(2000, 4), labels(2000, 3, seed=1)) == pytest.approx(0, abs=0.01)
    assert mixed_ksg(labels(2000, 2), np.random.default_rng(1).normal(size=2000)) == pytest.approx(0, abs=0.03)


@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_mixed_neighbours_find_what_a_coin_says_of_a_noisy_copy(spread: float) -> None:
    coin = labels(4000, 2)
    noisy = coin + spread * np.random.default_rng(1).normal(size=4000)
    assert mixed_ksg(coin, noisy) == pytest.approx(noisy_coin_information(spread), abs=0.03)


def test_mixed_neighbours_of_a_label_and_a_shifted_uniform() -> None:
    label = labels(4000, 5)
    moved = label + 2 * np.random.default_rng(1).random(4000)
    assert mixed_ksg(label, moved) == pytest.approx(math.log(5) - 0.8 * math.log(2), abs=0.05)


def test_mixed_neighbours_of_continuous_columns_are_those_of_ksg() -> None:
    x, y = pairs(2000, 1, 0.8)
    assert mixed_ksg(x, y, n_neighbors=3) == pytest.approx(ksg(x, y) + math.log(2000) - digamma(2000), abs=1e-9)
    assert mixed_ksg(*pairs(4000, 1, 0.8, seed=1)) == pytest.approx(information(1, 0.8), abs=0.06)


def test_a_column_is_tied_if_many_rows_share_its_values() -> None:
    rng = np.random.default_rng(0)
    column = rng.normal(size=(1000, 1))
    assert not has_ties(column)
    assert not has_ties(column.round(2))
    assert has_ties(np.where(rng.random((1000, 1)) < 0.4, 0, column))
    assert has_ties(np.hstack([column, labels(1000, 4)[:, None]]))


def test_auto_finds_the_entropy_of_labels() -> None:
    both = np.random.default_rng(0).integers(0, 2, (400, 2))
    found = mutual_information(both, both, random_state=0)
    assert found.estimator == MIXED
    assert found.reason == "many rows share a value"
    assert found.value == pytest.approx(2 * math.log(2), abs=0.02)
    assert found.interval[0] < 2 * math.log(2) < found.interval[1] + 0.01


def test_auto_takes_ties_term_by_term() -> None:
    x, y = pairs(400, 1, 0.8)
    found = total_correlation([x, y, labels(400, 2)], random_state=0)
    assert found.estimator == f"{MIXED}, ksg"
    assert found.value == pytest.approx(information(1, 0.8), abs=0.15)


def test_auto_says_that_ties_in_many_columns_are_not_looked_at() -> None:
    x, y = pairs(200, 4, 0.5)
    found = mutual_information(np.column_stack([x, labels(200, 2)]), y, random_state=0)
    assert found.reason.endswith("values that many rows share are taken as continuous")


@pytest.mark.parametrize("estimate", [ksg, ksg_improved, kde, gaussian, gaussian_copula])
def test_the_functions_for_continuous_columns_warn_of_ties(estimate: Callable[..., float]) -> None:
    with pytest.warns(TiesWarning, match=f"^y: many rows share a value, but '{estimate.__name__}' .* use 'mixed_ksg'"):
        estimate(np.random.default_rng(0).normal(size=200), labels(200, 2))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_estimators_for_continuous_columns_warn_of_ties(name: str) -> None:
    x = np.random.default_rng(0).normal(size=200)
    settings: dict[str, Any] = {"hidden": (4,)} if name == "ba" else {}
    with pytest.warns(TiesWarning, match="use 'mixed_ksg'") as caught:
        mutual_information(x, labels(200, 3), name, random_state=0, **settings)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_warning_names_the_first_variables() -> None:
    coins = np.random.default_rng(0).integers(0, 2, size=(200, 5))
    with pytest.warns(TiesWarning, match=r"^variables\[:, 0\], variables\[:, 1\], variables\[:, 2\] and 2 more: many"):
        total_correlation(coins, "ksg", random_state=0)
