"""Estimates from arrays: what is picked, the interval, and what is left alone."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from offmap.dependence import (
    Estimate,
    SaturationWarning,
    TiesWarning,
    TotalCorrelation,
    Training,
    mutual_information,
    total_correlation,
)
from offmap.dependence.auto import COPULA, KSG
from offmap.dependence.fitting import chunks, split
from offmap.dependence.interval import bootstrap_interval
from offmap.dependence.registry import NETWORKS, NONPARAMETRIC
from tests.dependence.gaussians import information, pairs

QUICK = Training(epochs=3, batch_size=128)


def test_few_columns_go_to_neighbours_few_rows_to_the_copula_and_fewer_to_neighbours() -> None:
    assert mutual_information(*pairs(300, 1, 0.5), random_state=0).estimator == KSG
    assert mutual_information(*pairs(300, 4, 0.5), random_state=0).estimator == COPULA
    few = mutual_information(*pairs(30, 4, 0.5), random_state=0)
    assert few.estimator == KSG
    assert few.reason == "30 rows are too few for 8 columns"


def test_the_columns_of_a_matrix_or_a_frame_are_the_variables() -> None:
    x, y = pairs(200, 1, 0.7)
    z = np.random.default_rng(1).normal(size=(200, 1))
    listed = total_correlation([x, y, z], "ksg", random_state=0)
    matrix = np.hstack([x, y, z])
    frame = pd.DataFrame(matrix, columns=["a", "b", "c"])
    tables: list[Any] = [matrix, frame, torch.from_numpy(matrix)]
    for variables in tables:
        assert total_correlation(variables, "ksg", random_state=0) == listed


def test_errors_name_the_column_of_a_frame() -> None:
    frame = pd.DataFrame({"a": np.arange(50.0), "b": np.ones(50)})
    with pytest.raises(ValueError, match="column 'b' must vary"):
        total_correlation(frame, "ksg")
    with pytest.raises(ValueError, match=r"column 'b' contains NaN"):
        total_correlation(frame.assign(b=np.nan), "ksg")
    with pytest.raises(ValueError, match="column names differ"):
        total_correlation(pd.DataFrame(np.zeros((50, 2)), columns=["a", "a"]))


@pytest.mark.parametrize("variables", [{"a": np.zeros(50)}, np.zeros(50), np.zeros((50, 2, 2)), "text", 3])
def test_other_things_are_not_taken_for_variables(variables: Any) -> None:
    with pytest.raises(ValueError, match="variables must be a list of arrays, or a matrix or DataFrame"):
        total_correlation(variables)


@pytest.mark.parametrize("variables", [np.zeros((50, 1)), pd.DataFrame({"a": np.zeros(50)})])
def test_one_column_is_too_few(variables: Any) -> None:
    with pytest.raises(ValueError, match="variables must be at least 2; got 1"):
        total_correlation(variables)


@pytest.mark.parametrize(
    ("estimator", "settings", "words"),
    [
        ("ksg", {"hidden": 3}, "estimator 'ksg' has no setting 'hidden'; it takes 'n_neighbors'"),
        ("gaussian", {"k": 3}, "estimator 'gaussian' has no setting 'k'; it takes no settings"),
        ("js", {"n_neighbors": 3}, "estimator 'js' has no setting 'n_neighbors'; it takes 'hidden', 'critic', 'n_nega"),
        ("club", {"x_width": 3}, "estimator 'club' has no setting 'x_width'; it takes 'hidden'"),
    ],
)
def test_settings_of_another_estimator_are_refused(estimator: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mutual_information(*pairs(50, 1, 0.5), estimator, **settings)
    with pytest.raises(ValueError, match=words):
        TotalCorrelation([1, 1], estimator=estimator, **settings)


@pytest.mark.parametrize("name", ["js", "smile", "mine", "nwj", "infonce", "ba"])
def test_networks_find_what_gaussians_share(name: str) -> None:
    x, y = pairs(3000, 2, 0.8)
    training = Training(epochs=12, lr=5e-3, batch_size=64)
    found = mutual_information(x, y, name, random_state=0, training=training, hidden=(32,))
    assert found.value == pytest.approx(information(2, 0.8), abs=0.25)
    assert found.bound == NETWORKS[name](1, 1, hidden=(4,)).bound
    assert found.rows == 600


def test_club_is_above_the_truth_once_fitted() -> None:
    x, y = pairs(3000, 2, 0.8)
    found = mutual_information(x, y, "club", random_state=0, training=Training(epochs=25, lr=3e-3), hidden=(64,))
    assert found.value > 1.5 * information(2, 0.8)


@pytest.mark.parametrize("name", [*NETWORKS, *NONPARAMETRIC])
def test_the_same_seed_gives_the_same_estimate_and_the_global_state_is_left_alone(name: str) -> None:
    x, y = pairs(200, 2, 0.5)
    torch_before = torch.get_rng_state()
    np.random.seed(7)
    first = mutual_information(x, y, name, random_state=3, training=QUICK)
    torch.rand(5)
    torch.set_rng_state(torch_before)
    assert first == mutual_information(x, y, name, random_state=3, training=QUICK)
    assert np.random.random() == np.random.RandomState(7).random()
    assert torch.equal(torch.get_rng_state(), torch_before)


@pytest.mark.parametrize("name", ["js", *NONPARAMETRIC])
def test_the_scale_of_the_columns_does_not_matter(name: str) -> None:
    x, y = pairs(400, 2, 0.7)
    scaled = (x * [1e-3, 50.0] + 7, 1e4 * y)
    values = [mutual_information(*both, name, random_state=0, training=QUICK).value for both in ((x, y), scaled)]
    assert values[0] == pytest.approx(values[1], abs=1e-3)


def test_bits_are_nats_over_the_logarithm_of_two() -> None:
    x, y = pairs(300, 1, 0.5)
    nats, bits = (mutual_information(x, y, "ksg", unit=unit, random_state=0) for unit in ("nats", "bits"))
    assert bits.value == pytest.approx(nats.value / math.log(2))
    assert bits.interval == pytest.approx([end / math.log(2) for end in nats.interval])
    assert bits.to_unit("nats").value == pytest.approx(nats.value)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    truth = information(2, 0.6)
    found = [mutual_information(*pairs(300, 2, 0.6, seed), "gaussian", random_state=0) for seed in range(60)]
    held = sum(low <= truth <= high for low, high in (one.interval for one in found))
    assert held >= 50
    widths = [high - low for low, high in (one.interval for one in found)]
    assert np.mean(widths) == pytest.approx(3.92 * np.std([one.value for one in found]), rel=0.35)


def test_the_bootstrap_is_that_of_a_mean() -> None:
    values = np.random.default_rng(0).exponential(size=2000)
    low, high = bootstrap_interval(values, np.random.default_rng(0))
    half = 1.96 * values.std() / math.sqrt(2000)
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.1 * half)


def gaussian_entropy(width: int, spread: float) -> float:
    return width * (0.5 * math.log(2 * math.pi * math.e) + math.log(spread))


@pytest.mark.parametrize("scale", [0.01, 1.0, 10.0])
def test_a_known_entropy_is_that_of_the_variable_as_it_is_given(scale: float) -> None:
    x, y = pairs(2000, 2, 0.7)
    widened = np.hstack([scale * y, np.full((2000, 1), 3.0)])
    settings: dict[str, Any] = {
        "entropy": gaussian_entropy(2, scale),
        "training": Training(epochs=15),
        "random_state": 0,
    }
    found = mutual_information(x, widened, "ba", hidden=(32,), **settings)
    assert found.bound == "lower"
    assert found.value == pytest.approx(information(2, 0.7), abs=0.15)


def test_a_total_correlation_has_no_single_entropy() -> None:
    with pytest.raises(ValueError, match="total_correlation takes no entropy"):
        total_correlation([*pairs(50, 1, 0.5)], "ba", entropy=1.4)


def test_total_correlation_is_the_sum_over_any_decomposition() -> None:
    x, y = pairs(1000, 1, 0.8)
    z = np.random.default_rng(5).normal(size=(1000, 1)) + y
    truth = information(1, 0.8) + 0.5 * math.log(2)
    for shape in ("tree", "line", "direct"):
        found = total_correlation([x, y, z], "ksg", decomposition=shape, random_state=0)
        assert found.value == pytest.approx(truth, abs=0.15)
    assert total_correlation([x, y, z], random_state=0).estimator == KSG


def test_total_correlation_says_what_was_picked_for_each_term() -> None:
    groups = [*pairs(300, 1, 0.8), *pairs(300, 3, 0.2, seed=1)]
    found = total_correlation(groups, random_state=0)
    assert found.estimator == f"{COPULA}, {KSG}"
    assert found.reason == f"{COPULA}: 300 rows are too few to train a network; {KSG}: 2 columns"


def test_ties_do_not_spoil_neighbours() -> None:
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, size=2000)
    with pytest.warns(TiesWarning):
        alike = mutual_information(coins, coins ^ (rng.random(2000) < 0.1), "ksg", random_state=0)
    with pytest.warns(TiesWarning):
        apart = mutual_information(coins, rng.integers(0, 2, size=2000), "ksg", random_state=0)
    assert alike.value == pytest.approx(math.log(2) - 0.325, abs=0.06)
    assert apart.value == pytest.approx(0, abs=0.06)


def test_constant_columns_share_nothing() -> None:
    x, y = pairs(200, 2, 0.5)
    padded = np.hstack([x, np.full((200, 1), 1e6)])
    same = [mutual_information(rows, y, "gaussian", random_state=0).value for rows in (x, padded)]
    assert same[0] == pytest.approx(same[1], abs=1e-6)
    with pytest.raises(ValueError, match="x must vary"):
        mutual_information(np.ones(200), y)


def test_infonce_warns_that_the_truth_may_be_higher() -> None:
    x, _ = pairs(400, 4, 0.5)
    with pytest.warns(SaturationWarning):
        mutual_information(x, x, "infonce", random_state=0, training=Training(batch_size=8, epochs=12), hidden=(64,))


def test_rows_are_split_in_three_without_overlap() -> None:
    rows = np.arange(100.0)[:, None]
    parts = split([rows, rows], held_out=0.4)
    values = [part[0][:, 0].tolist() for part in (parts.training, parts.stopping, parts.evaluation)]
    assert [len(part) for part in values] == [60, 20, 20]
    assert sorted([*values[0], *values[1], *values[2]]) == rows[:, 0].tolist()
    assert parts.evaluation_rows.tolist() == values[2]


@pytest.mark.parametrize(
    ("rows", "size", "sizes"), [(10, 4, [4, 3, 3]), (3, 2, [3]), (5, 100, [5]), (9, 2, [3, 2, 2, 2])]
)
def test_chunks_are_even_and_never_of_one_row(rows: int, size: int, sizes: list[int]) -> None:
    assert [len(chunk[0]) for chunk in chunks((torch.zeros(rows, 1),), size)] == sizes


def test_an_estimate_reads_as_a_sentence() -> None:
    estimate = Estimate(1.0, (0.5, 1.5), "nwj", "lower", "nats", 10, "it was asked for")
    assert str(estimate) == "1.000 nats (0.500 to 1.500) by nwj, a lower bound (it was asked for)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"estimator": "magic"}, "estimator must be one of 'auto', 'ba'"),
        ({"unit": "hartley"}, "unit must be 'nats' or 'bits'; got 'hartley'"),
        ({"n_neighbors": 5}, "estimator 'auto' takes no settings; got n_neighbors"),
        ({"training": {"epochs": 3}}, "training must be a Training; got"),
        ({"random_state": -1}, "random_state must be an integer at least 0, .* got -1"),
        ({"estimator": "ba", "entropy": "high"}, "entropy must be a number; got 'high'"),
        ({"estimator": "js", "hidden": ()}, "hidden must have at least one width for critic 'joint'"),
        ({"estimator": "js", "hidden": 32}, "hidden must be a tuple, each item an integer at least 1; got 32"),
        ({"estimator": "club", "hidden": 32}, "hidden must be a tuple, each item an integer at least 1; got 32"),
        ({"estimator": "js", "training": Training(held_out=0.99)}, "held_out must leave at least 2 of 50 rows"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mutual_information(*pairs(50, 1, 0.5), **arguments)  # type: ignore[arg-type]


def test_bad_variables_are_refused_by_name() -> None:
    x, y = pairs(50, 1, 0.5)
    with pytest.raises(ValueError, match="variables must be at least 2; got 1"):
        total_correlation([x])
    with pytest.raises(ValueError, match=r"variables\[1\] has 49"):
        total_correlation([x, y[1:]])
    with pytest.raises(ValueError, match="decomposition must be 'tree' or 'line' for estimator 'js'; got 'direct'"):
        total_correlation([x, y], "js", decomposition="direct")
    with pytest.raises(ValueError, match="needs at least 20 rows; got 10"):
        mutual_information(x[:10], y[:10], "js")
    with pytest.raises(ValueError, match="epochs must be an integer at least 1; got 0"):
        Training(epochs=0)
    with pytest.raises(ValueError, match="batch_size must be an integer at least 2; got 1"):
        Training(batch_size=1)
    with pytest.raises(ValueError, match="an estimate needs at least 4 rows; got 3"):
        mutual_information(x[:3], y[:3])


def test_texts_are_refused_by_the_name_of_their_variable() -> None:
    texts = np.array(["red", "blue"] * 25)
    with pytest.raises(ValueError, match=r"y must hold numbers, .* could not convert string to float"):
        mutual_information(np.arange(50.0), texts)
    with pytest.raises(ValueError, match="column 'colour' must hold numbers"):
        total_correlation(pd.DataFrame({"size": np.arange(50.0), "colour": texts}))
    with pytest.raises(ValueError, match="y must hold numbers, in at least 2 rows"):
        mutual_information(np.arange(50.0), [1.0])


def test_settings_may_be_numbers_of_numpy() -> None:
    x, y = pairs(100, 1, 0.5)
    plain, numpy = (mutual_information(x, y, "ksg", n_neighbors=k, random_state=0) for k in (5, np.int64(5)))
    assert plain == numpy


def test_more_is_shared_where_more_is_correlated() -> None:
    values = [mutual_information(*pairs(600, 1, r), random_state=0).value for r in (0.0, 0.5, 0.9, 0.99)]
    assert all(lower < higher for lower, higher in pairwise(values))


@pytest.mark.parametrize("estimator", ["auto", "gaussian_copula"])
@pytest.mark.parametrize("change", ["outlier", "far outlier", "heavy tail", "large", "small", "shifted"])
def test_scale_and_outliers_do_not_change_an_estimate_that_ranks(estimator: str, change: str) -> None:
    x, noise = np.random.default_rng(0).normal(size=(2, 2000))
    y = x + noise
    changed = {
        "outlier": np.where(np.arange(2000) == 0, 1e12, x),
        "far outlier": np.where(np.arange(2000) == 0, 1e300, x),
        "heavy tail": np.exp(10 * x),
        "large": x * 1e160,
        "small": x * 1e-200,
        "shifted": x + 1e6,
    }[change]
    found = mutual_information(changed, y, estimator, random_state=0).value
    assert found == pytest.approx(mutual_information(x, y, estimator, random_state=0).value, abs=0.01)
    assert found == pytest.approx(np.log(2) / 2, abs=0.04)


@pytest.mark.parametrize("estimator", ["ksg", "kde", "mixed_ksg"])
@pytest.mark.parametrize("outlier", [1e12, 1e25])
def test_estimators_by_distance_warn_of_far_outliers(estimator: str, outlier: float) -> None:
    x, noise = np.random.default_rng(0).normal(size=(2, 300))
    y = x + noise
    x[0] = outlier
    with pytest.warns(UserWarning, match="^x: a few values lie so far out"):
        mutual_information(x, y, estimator, random_state=0)


@pytest.mark.parametrize("factor", [1e160, 1e-200])
@pytest.mark.parametrize("estimator", ["gaussian", "ksg"])
def test_large_and_small_units_do_not_change_an_estimate(estimator: str, factor: float) -> None:
    x, noise = np.random.default_rng(0).normal(size=(2, 300))
    found = mutual_information(x * factor, x + noise, estimator, random_state=0).value
    assert found == pytest.approx(mutual_information(x, x + noise, estimator, random_state=0).value, rel=1e-6)


def test_a_column_far_from_zero_is_not_dropped() -> None:
    x, noise, other = np.random.default_rng(0).normal(size=(3, 2000))
    found = mutual_information(np.column_stack([other, x + 1e13]), x + noise, "gaussian_copula", random_state=0)
    assert found.value == pytest.approx(np.log(2) / 2, abs=0.04)
