"""The SVGD direction against a naive loop, and particles against a known posterior."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from offmap.sampling import SVGD, AmortisedSVGD
from offmap.sampling.stein import score, svgd_direction
from offmap.train import TrainingError


def naive(x: Tensor, scores: Tensor, y: Tensor, bandwidth: float) -> Tensor:
    found = torch.zeros_like(y)
    for j, place in enumerate(y):
        for i in range(len(x)):
            point = x[i].clone().requires_grad_()
            kernel = (-(point - place).square().sum() / bandwidth).exp()
            (slope,) = torch.autograd.grad(kernel, point)
            found[j] += (kernel.detach() * scores[i] + slope) / len(x)
    return found


def test_direction_is_that_of_a_naive_loop_for_each_context() -> None:
    torch.manual_seed(0)
    x, scores, y = (torch.randn(2, n, 3, dtype=torch.float64) for n in (5, 5, 4))
    found = svgd_direction(x, scores, y, bandwidth=1.7)
    for context in range(2):
        torch.testing.assert_close(found[context], naive(x[context], scores[context], y[context], 1.7))


def test_bandwidth_is_the_median_over_the_logarithm_of_the_count() -> None:
    x = torch.randn(9, 2, dtype=torch.float64)
    median = (x[:, None] - x[None]).square().sum(-1).flatten().median()
    by_hand = svgd_direction(x, -x, bandwidth=median / np.log(10))
    torch.testing.assert_close(svgd_direction(x, -x), by_hand)


def test_score_is_the_gradient() -> None:
    x = torch.randn(4, 3)
    torch.testing.assert_close(score(lambda z: -z.square().sum(1) / 2, x), -x)


def posterior(x: Tensor) -> Tensor:
    """Mean of five observations 1.5 with unit noise and a prior N(0, 1): N(1.25, 1/6)."""
    return -x.square().sum(1) / 2 - 5 * (x[:, 0] - 1.5).square() / 2


def test_particles_match_a_known_posterior() -> None:
    sampler = SVGD(log_density=posterior, dim=1, particles=150, steps=1500, lr=0.3, random_state=0).fit()
    assert sampler.particles_.mean() == pytest.approx(1.25, abs=0.02)
    assert sampler.particles_.var() == pytest.approx(1 / 6, rel=0.15)
    assert sampler.sample(400, random_state=0).shape == (400, 1)


def test_the_amortised_one_matches_it_too() -> None:
    sampler = AmortisedSVGD(
        log_density=posterior, dim=1, hidden=(32,), steps=400, batch_size=100, lr=5e-3, random_state=0
    ).fit()
    samples = sampler.sample(5000, random_state=0)
    assert samples.mean() == pytest.approx(1.25, abs=0.1)
    assert samples.var() == pytest.approx(1 / 6, rel=0.3)


def test_a_step_is_that_of_adagrad() -> None:
    """Two steps by hand: the step size is lr over the root of the sum of squared directions."""
    start, first, second = (
        SVGD(log_density=posterior, dim=1, particles=9, steps=steps, lr=lr, random_state=0).fit().particles_
        for steps, lr in ((1, 1e-12), (1, 0.3), (2, 0.3))
    )
    x, squares = torch.from_numpy(start), torch.zeros(9, 1)
    for expected in (first, second):
        direction = svgd_direction(x, score(posterior, x))
        squares = squares + direction.square()
        x = x + 0.3 * direction / (squares.sqrt() + 1e-6)
        np.testing.assert_allclose(x.numpy(), expected, rtol=1e-5)


def test_particles_are_repeated_equally_often() -> None:
    sampler = SVGD(log_density=posterior, dim=1, particles=10, steps=1, random_state=0).fit()
    _, counts = np.unique(sampler.sample(25, random_state=0), return_counts=True)
    assert sorted(counts) == [2] * 5 + [3] * 5
    assert len(np.unique(sampler.sample(4, random_state=0))) == 4


def cut(x: Tensor) -> Tensor:
    """Zero beyond 2.5, which no initial sample reaches."""
    return torch.where(x[:, 0] > 2.5, -torch.inf, -(x[:, 0] - 2).square() / 2)


@pytest.mark.parametrize(
    "sampler",
    [
        SVGD(log_density=cut, dim=1, scale=0.5, particles=50, steps=200, random_state=0),
        AmortisedSVGD(
            log_density=cut, dim=1, scale=0.5, hidden=(16,), steps=150, batch_size=64, lr=1e-2, random_state=0
        ),
    ],
)
def test_samples_where_the_density_is_zero_are_refused(sampler: Any) -> None:
    with pytest.raises(TrainingError, match=r"log_density is -inf at .* samples; use RAS with .* support"):
        sampler.fit()


def test_particles_that_diverge_are_refused() -> None:
    def unbounded(x: Tensor) -> Tensor:
        return x[:, 0].abs().pow(4)

    with pytest.raises(TrainingError, match=r"log_density is inf|the samples became nan or infinite"):
        SVGD(log_density=unbounded, dim=1, steps=60, lr=1e30, particles=10, random_state=0).fit()


def test_a_log_density_of_numpy_is_refused_by_both() -> None:
    for sampler in (SVGD, AmortisedSVGD):
        with pytest.raises(ValueError, match="log_density must be differentiable"):
            sampler(log_density=lambda x: -np.square(x).sum(1), random_state=0).fit()
