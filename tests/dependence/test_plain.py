"""The plain calls: what is picked, how sure it is, and what they leave alone."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from offmap.dependence import Estimate, SaturationWarning, Training, mutual_information, total_correlation
from offmap.dependence.auto import COPULA, CORRECTED, NEIGHBOURS
from offmap.dependence.estimate import bootstrap_interval
from offmap.dependence.fitting import chunks, split
from offmap.dependence.registry import NETWORKS, SAMPLES
from offmap.dependence.residual import GaussianRatio, Residual, ResidualCritic
from tests.dependence.gaussians import correlated, information

Array = NDArray[np.float64]
QUICK = Training(epochs=3, batch_size=128)


def pairs(rows: int, width: int, correlation: float, seed: int = 0) -> tuple[Array, Array]:
    x, y = correlated(rows, width, correlation, seed)
    return x.double().numpy(), y.double().numpy()


def test_few_columns_go_to_neighbours_few_rows_to_the_copula_and_fewer_to_neighbours() -> None:
    assert mutual_information(*pairs(300, 1, 0.5), random_state=0).estimator == NEIGHBOURS
    assert mutual_information(*pairs(300, 4, 0.5), random_state=0).estimator == COPULA
    few = mutual_information(*pairs(30, 4, 0.5), random_state=0)
    assert few.estimator == NEIGHBOURS
    assert few.reason == "30 rows are too few for 8 columns"


def heavy_tailed(rows: int, seed: int) -> tuple[Array, Array]:
    """Variables without correlation that share their scale, and so what a Student-t shares: 0.26 nats."""
    rng = np.random.default_rng(seed)
    scale = np.sqrt(2 / rng.chisquare(2, size=(rows, 1)))
    x, y = rng.normal(size=(2, rows, 3))
    return x * scale, y * scale


@pytest.mark.parametrize("variables", [np.zeros((50, 3)), pd.DataFrame(np.zeros((50, 3))), {"a": np.zeros(50)}])
def test_a_matrix_is_not_taken_for_a_list_of_variables(variables: Any) -> None:
    with pytest.raises(ValueError, match=r"variables must be a list of arrays, one a variable"):
        total_correlation(variables)


def test_auto_finds_what_a_copula_cannot_see() -> None:
    x, y = heavy_tailed(2500, seed=1)
    copula = mutual_information(x, y, "gaussian-copula", random_state=0)
    found = mutual_information(x, y, random_state=0)
    assert found.estimator == CORRECTED
    assert abs(copula.value) < 0.05
    assert found.value == pytest.approx(0.29, abs=0.1)
    assert found.interval[0] > 0.1


def test_auto_stays_at_the_copula_where_that_is_all() -> None:
    x, y = pairs(2000, 3, 0.7)
    found = mutual_information(np.exp(x), y**3, random_state=0)
    assert found.value == pytest.approx(information(3, 0.7), abs=0.08)


def test_auto_adds_nothing_to_a_gaussian_of_many_columns() -> None:
    x, y = pairs(1000, 25, 0.4)
    copula, found = (mutual_information(x, y, name, random_state=0).value for name in ("gaussian-copula", "auto"))
    assert found == pytest.approx(copula, abs=0.12)


def test_the_gaussian_ratio_is_the_ratio_of_densities() -> None:
    x, y = pairs(200, 2, 0.6)
    x, y = x - x.mean(0), y - y.mean(0)
    both = np.hstack([x, y])
    parts = [multivariate_normal(cov=rows.T @ rows / 200).logpdf(rows) for rows in (both, x, y)]
    ratio = GaussianRatio.fit(x, y)
    critic = ResidualCritic(ratio, [2], [2], (8,))
    score = critic.score(*critic.embed(torch.from_numpy(x).float()[None], torch.from_numpy(y).float()[None]))
    np.testing.assert_allclose(score[0].detach().numpy(), parts[0] - parts[1] - parts[2], atol=1e-4)


def test_a_residual_is_nothing_before_it_learns_and_moves_when_it_does() -> None:
    x, y = correlated(50, 2, 0.6)
    ratio = GaussianRatio.fit(x.double().numpy(), y.double().numpy())
    estimator = Residual(2, 2, critic=lambda *widths: ResidualCritic(ratio, *widths), hidden=(8,))
    assert (estimator.pointwise(x, y) == 0).all()
    estimator.loss(x, y).backward()
    assert estimator.critic.rest.rest[-1].weight.grad.abs().sum() > 0  # type: ignore[union-attr,operator]


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


@pytest.mark.parametrize("name", [*NETWORKS, *SAMPLES])
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


@pytest.mark.parametrize("name", ["js", *SAMPLES])
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
    assert bits.within("nats").value == pytest.approx(nats.value)


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


def test_total_correlation_is_the_sum_over_any_decomposition() -> None:
    x, y = pairs(1000, 1, 0.8)
    z = np.random.default_rng(5).normal(size=(1000, 1)) + y
    truth = information(1, 0.8) + 0.5 * math.log(2)
    for shape in ("tree", "line", "direct"):
        found = total_correlation([x, y, z], "ksg", decomposition=shape, random_state=0)
        assert found.value == pytest.approx(truth, abs=0.15)
    assert total_correlation([x, y, z], random_state=0).estimator == NEIGHBOURS


def test_total_correlation_says_what_was_picked_for_each_term() -> None:
    groups = [*pairs(300, 1, 0.8), *pairs(300, 3, 0.2, seed=1)]
    found = total_correlation(groups, random_state=0)
    assert found.estimator == f"{COPULA}, {NEIGHBOURS}"
    assert found.reason == f"{COPULA}: 300 rows are too few to learn from; {NEIGHBOURS}: 2 columns"


def test_ties_do_not_spoil_neighbours() -> None:
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, size=2000)
    alike = mutual_information(coins, coins ^ (rng.random(2000) < 0.1), "ksg", random_state=0)
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
    values = [part[0][:, 0].tolist() for part in (parts.learnt, parts.stopping, parts.valued)]
    assert [len(part) for part in values] == [60, 20, 20]
    assert sorted([*values[0], *values[1], *values[2]]) == rows[:, 0].tolist()
    assert parts.places.tolist() == values[2]


@pytest.mark.parametrize(
    ("rows", "size", "sizes"), [(10, 4, [4, 3, 3]), (3, 2, [3]), (5, 100, [5]), (9, 2, [3, 2, 2, 2])]
)
def test_chunks_are_even_and_never_of_one_row(rows: int, size: int, sizes: list[int]) -> None:
    assert [len(chunk[0]) for chunk in chunks([torch.zeros(rows, 1)], size)] == sizes


def test_an_estimate_reads_as_a_sentence() -> None:
    estimate = Estimate(1.0, (0.5, 1.5), "nwj", "lower", "nats", 10, "it was asked for")
    assert str(estimate) == "1.000 nats (0.500 to 1.500) by nwj, a lower bound (it was asked for)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"estimator": "magic"}, "estimator must be among 'auto', 'ba'"),
        ({"unit": "hartley"}, "unit must be 'nats' or 'bits'; got 'hartley'"),
        ({"k": 5}, "settings must not be given with estimator='auto'; got k"),
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
    with pytest.raises(ValueError, match="decomposition must be 'tree' or 'line' for 'js'; got 'direct'"):
        total_correlation([x, y], "js", decomposition="direct")
    with pytest.raises(ValueError, match="needs at least 20 rows; got 10"):
        mutual_information(x[:10], y[:10], "js")
    with pytest.raises(ValueError, match="epochs must be an integer at least 1; got 0"):
        Training(epochs=0)


def test_more_is_shared_where_more_is_correlated() -> None:
    values = [mutual_information(*pairs(600, 1, r), random_state=0).value for r in (0.0, 0.5, 0.9, 0.99)]
    assert all(lower < higher for lower, higher in pairwise(values))
