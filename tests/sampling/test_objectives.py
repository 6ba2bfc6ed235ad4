"""Losses and objectives against closed forms."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from offmap.ratio import ratio_loss
from offmap.sampling import FGAN
from offmap.sampling.annealing import annealed_power, linear_decay
from offmap.sampling.divergences import OBJECTIVES
from offmap.sampling.objectives import cycle_error, log_ratio
from offmap.sampling.references import GaussianReference


def test_with_the_true_ratio_the_generators_gradient_is_that_of_the_divergence() -> None:
    """q = N(m, s²) by x = m + s ε, p = N(0, 1): dKL(q‖p)/dm = m, and dKL/ds = s − 1/s."""
    torch.manual_seed(0)
    m, s = torch.tensor(0.7, requires_grad=True), torch.tensor(1.6, requires_grad=True)
    reference = GaussianReference(torch.tensor([[0.2]]), torch.tensor([[2.0]]))

    def true_ratio(x: Tensor, context: Tensor | None) -> Tensor:
        q = torch.distributions.Normal(m.detach(), s.detach())
        return reference.log_prob(x) - q.log_prob(x).squeeze(-1)

    noise = torch.randn(400_000, 1)
    x = m + s * (noise - noise.mean()) / noise.std()
    objective = log_ratio(true_ratio, reference, lambda x: -x.square().sum(-1) / 2, x).mean()  # type: ignore[arg-type]
    gradient = torch.autograd.grad(-objective, (m, s))
    assert float(gradient[0]) == pytest.approx(0.7, abs=0.01)
    assert float(gradient[1]) == pytest.approx(1.6 - 1 / 1.6, abs=0.01)


def test_the_best_critic_is_the_log_ratio() -> None:
    """On two points, with masses known, the loss is least at log p/q."""
    p, q = torch.tensor([0.75, 0.25]), torch.tensor([0.5, 0.5])
    rows_p, rows_q = torch.tensor([0, 0, 0, 1]), torch.tensor([0, 1])
    w = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], max_iter=100)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = ratio_loss(w[rows_p], w[rows_q])
        loss.backward()
        return loss

    optimizer.step(closure)
    torch.testing.assert_close(w.detach(), (p / q).log(), atol=1e-3, rtol=0)


def test_objectives_are_the_functions_of_the_table() -> None:
    w = torch.linspace(-2, 2, 41)
    r = w.exp()
    expected = {
        "reverse_kl": r.log(),
        "kl": r,
        "hellinger": r.sqrt(),
        "total_variation": ((r - 1) / (r + 1)) / 2,
        "pearson": (r - 1) ** 2 + 2 * (r - 1),
        "neyman": -1 / r,
        "gan": -(1 / (1 + r)).log(),
        "non_saturating": (r / (1 + r)).log(),
    }
    assert expected.keys() == OBJECTIVES.keys()
    for name, values in expected.items():
        torch.testing.assert_close(OBJECTIVES[name](w), values, atol=1e-4, rtol=1e-4)


def test_the_objective_of_total_variation_tends_to_the_tables() -> None:
    """The table has ½ sign(r − 1), whose gradient is zero."""
    w = torch.tensor([-20.0, 20.0])
    torch.testing.assert_close(OBJECTIVES["total_variation"](w), w.sign() / 2)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_objectives_increase_and_stay_finite(name: str) -> None:
    w = torch.linspace(-30, 1000, 5000, dtype=torch.float64)
    values = OBJECTIVES[name](w)
    assert values.isfinite().all()
    assert (values.diff() >= 0).all()


def test_cycle_error_is_the_mean_squared_distance() -> None:
    noise, recovered = torch.randn(6, 3), torch.randn(6, 3)
    expected = np.mean([sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for x, y in
                        zip(noise.tolist(), recovered.tolist(), strict=True)])  # fmt: skip
    assert float(cycle_error(noise, recovered)) == pytest.approx(expected, rel=1e-5)


def test_annealing_rises_geometrically_to_the_true_target() -> None:
    powers = [annealed_power(progress, 0.6, 0.01) for progress in np.linspace(0, 0.6, 5)]
    assert powers[0] == pytest.approx(0.01)
    assert np.allclose(np.diff(np.log(powers)), math.log(100) / 4)
    assert annealed_power(0.6, 0.6, 0.01) == annealed_power(1.0, 0.6, 0.01) == 1.0
    assert linear_decay(0.6, 0.6) == linear_decay(1.0, 0.6) == 0.0


@pytest.mark.parametrize("divergence", ["reverse-kl", "wasserstein", None])
def test_an_unknown_divergence_is_refused(divergence: Any) -> None:
    with pytest.raises(ValueError, match="divergence must be a str among 'reverse_kl', 'kl'"):
        FGAN(dim=1, divergence=divergence).fit(np.zeros((4, 1)))
