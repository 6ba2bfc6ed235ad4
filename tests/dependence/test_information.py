"""Estimates from arrays: what is picked, the interval, and what is left alone."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from offmap.dependence import (
    JS,
    Estimate,
    SaturationWarning,
    TotalCorrelation,
    Training,
    auto,
    mutual_information,
    total_correlation,
)
from offmap.dependence.auto import COPULA, CORRECTED, KSG
from offmap.dependence.estimate import bootstrap_interval
from offmap.dependence.fitting import Split, _BestPerTerm, chunks, split
from offmap.dependence.registry import NETWORKS, NONPARAMETRIC
from offmap.dependence.residual import GaussianRatio, Residual, ResidualCritic
from tests.dependence.gaussians import correlated, information

Array = NDArray[np.float64]
QUICK = Training(epochs=3, batch_size=128)


def pairs(rows: int, width: int, correlation: float, seed: int = 0) -> tuple[Array, Array]:
    x, y = correlated(rows, width, correlation, seed)
    return x.double().numpy(), y.double().numpy()


def test_few_columns_go_to_neighbours_few_rows_to_the_copula_and_fewer_to_neighbours() -> None:
    assert mutual_information(*pairs(300, 1, 0.5), random_state=0).estimator == KSG
    assert mutual_information(*pairs(300, 4, 0.5), random_state=0).estimator == COPULA
    few = mutual_information(*pairs(30, 4, 0.5), random_state=0)
    assert few.estimator == KSG
    assert few.reason == "30 rows are too few for 8 columns"


def heavy_tailed(rows: int, seed: int) -> tuple[Array, Array]:
    """Variables without correlation that share their scale, and so what a Student-t shares: 0.26 nats."""
    rng = np.random.default_rng(seed)
    scale = np.sqrt(2 / rng.chisquare(2, size=(rows, 1)))
    x, y = rng.normal(size=(2, rows, 3))
    return x * scale, y * scale


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


def shared_scales(rows: int, widths: tuple[int, ...]) -> list[Array]:
    """Pairs of variables; each pair shares a scale of its own, which no correlation shows."""
    rng = np.random.default_rng(0)
    scales = [np.sqrt(2 / rng.chisquare(2, size=(rows, 1))) for _ in widths]
    return [rng.normal(size=(rows, width)) * scales[place] for place, width in enumerate(widths) for _ in "xy"]


def test_auto_can_train_the_networks_of_all_terms_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[int] = []

    def count(model: Residual, parts: Split, training: Training) -> None:
        fitted.append(len(model.x_widths))

    monkeypatch.setattr(auto, "fit_stack", count)
    groups = shared_scales(600, (3, 2))
    total_correlation(groups, random_state=0, training=Training(stack_terms=True))
    total_correlation(groups, random_state=0)
    assert fitted == [3, 1, 1, 1]


def test_stacked_terms_find_what_each_finds_alone() -> None:
    groups = shared_scales(2000, (3, 2))
    stacked, alone = (
        total_correlation(groups, random_state=0, training=Training(stack_terms=stack)) for stack in (True, False)
    )
    copula = total_correlation(groups, "gaussian_copula", random_state=0)
    assert stacked.estimator == alone.estimator == CORRECTED
    assert stacked.value == pytest.approx(alone.value, abs=0.25)
    assert min(stacked.value, alone.value) > copula.value + 0.2


def test_a_stacked_critic_is_its_critics_one_by_one() -> None:
    x, y = pairs(100, 3, 0.6)
    ratios = [GaussianRatio.fit(x, y), GaussianRatio.fit(x[:, :1], y[:, :2])]
    stack = ResidualCritic(ratios, [3, 1], [3, 2], (8,))
    for parameter in stack.parameters():
        torch.nn.init.normal_(parameter)
    padded = np.stack([x, x * [1, 0, 0]]), np.stack([y, y * [1, 1, 0]])
    rows = [torch.from_numpy(side).float() for side in padded]
    found = stack.score(*stack.embed(*rows))
    for term, (left, right) in enumerate(((3, 3), (1, 2))):
        alone = ResidualCritic([ratios[term]], [left], [right], (8,))
        state = stack.state_dict()
        for name, value in alone.state_dict().items():
            cut = state[name][term : term + 1]
            if name in ("rest.left.weight", "rest.right.weight"):
                # The last column is the length of the row, which follows the padding.
                cut = torch.cat([cut[:, : value.shape[1] - 1], cut[:, -1:]], dim=1)
            value.copy_(cut[tuple(slice(size) for size in value.shape)])
        own = rows[0][term : term + 1, :, :left], rows[1][term : term + 1, :, :right]
        torch.testing.assert_close(found[term], alone.score(*alone.embed(*own))[0])


def test_each_term_of_a_stack_keeps_its_own_best_epoch() -> None:
    model = JS([2, 2], [2, 2], hidden=(4,))
    best = _BestPerTerm(model)
    bias = next(parameter for name, parameter in model.named_parameters() if name == "critic.left.bias")
    falls = []
    for step, losses in enumerate([(3.0, 1.0), (2.0, 5.0), (4.0, 4.0)]):
        torch.nn.init.constant_(bias, float(step))
        falls.append(best.update(torch.tensor(losses)))
    best.restore()
    assert falls[0] > falls[1] == falls[2]
    assert (bias[0] == 1).all()
    assert (bias[1] == 0).all()


def test_auto_finds_what_a_copula_cannot_see() -> None:
    x, y = heavy_tailed(2500, seed=1)
    copula = mutual_information(x, y, "gaussian_copula", random_state=0)
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
    copula, found = (mutual_information(x, y, name, random_state=0).value for name in ("gaussian_copula", "auto"))
    assert found == pytest.approx(copula, abs=0.12)


def test_the_gaussian_ratio_is_the_ratio_of_densities() -> None:
    x, y = pairs(200, 2, 0.6)
    x, y = x - x.mean(0), y - y.mean(0)
    both = np.hstack([x, y])
    parts = [multivariate_normal(cov=rows.T @ rows / 200).logpdf(rows) for rows in (both, x, y)]
    ratio = GaussianRatio.fit(x, y)
    critic = ResidualCritic([ratio], [2], [2], (8,))
    score = critic.score(*critic.embed(torch.from_numpy(x).float()[None], torch.from_numpy(y).float()[None]))
    np.testing.assert_allclose(score[0].detach().numpy(), parts[0] - parts[1] - parts[2], atol=1e-4)


def test_a_residual_is_nothing_before_it_learns_and_moves_when_it_does() -> None:
    x, y = correlated(50, 2, 0.6)
    ratio = GaussianRatio.fit(x.double().numpy(), y.double().numpy())
    estimator = Residual(2, 2, critic=lambda *widths: ResidualCritic([ratio], *widths), hidden=(8,))
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


def test_more_is_shared_where_more_is_correlated() -> None:
    values = [mutual_information(*pairs(600, 1, r), random_state=0).value for r in (0.0, 0.5, 0.9, 0.99)]
    assert all(lower < higher for lower, higher in pairwise(values))
