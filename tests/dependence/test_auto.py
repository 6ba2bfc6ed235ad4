"""The automatic estimator: a Gaussian copula corrected by a network, and the networks of many terms as one stack."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from offmap.dependence import (
    JS,
    Training,
    auto,
    mutual_information,
    total_correlation,
)
from offmap.dependence.auto import CORRECTED
from offmap.dependence.fitting import Split, _BestPerTerm
from offmap.dependence.residual import GaussianRatio, Residual, ResidualCritic
from tests.dependence.gaussians import Array, correlated, information, pairs


def heavy_tailed(rows: int, seed: int) -> tuple[Array, Array]:
    """Variables without correlation that share their scale, and so what a Student-t shares: 0.26 nats."""
    rng = np.random.default_rng(seed)
    scale = np.sqrt(2 / rng.chisquare(2, size=(rows, 1)))
    x, y = rng.normal(size=(2, rows, 3))
    return x * scale, y * scale


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
