"""Noise as a mixture of Gaussians with learnt weights."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from offmap.random_state import local_seed
from offmap.sampling.noise import GaussianNoise, MixtureNoise

CPU = torch.device("cpu")


def mixture(components: int, dim: int = 2) -> MixtureNoise:
    with local_seed(0):
        return MixtureNoise(components, dim)


def test_gaussian_noise_has_the_shape_of_the_contexts() -> None:
    assert GaussianNoise(3).draw((4, 5), CPU).shape == (4, 5, 3)


def test_a_mixture_starts_with_the_moments_of_a_standard_gaussian() -> None:
    noise = mixture(2000).draw((20_000,), CPU, torch.Generator().manual_seed(0)).detach()
    np.testing.assert_allclose(noise.mean(0), 0, atol=0.1)
    np.testing.assert_allclose(noise.std(0), 1, atol=0.1)


def test_drawn_components_have_their_weights() -> None:
    noise = mixture(3)
    noise.log_weights.copy_(torch.tensor([0.1, 0.2, 0.7]).log())
    with torch.no_grad():
        noise.scaled_means.copy_(torch.tensor([[-9.0, 0.0], [0.0, 0.0], [9.0, 0.0]]))
        drawn = noise.draw((20_000,), CPU, torch.Generator().manual_seed(0))
    nearest = torch.cdist(drawn, noise.means).argmin(1)
    np.testing.assert_allclose(torch.bincount(nearest) / 20_000, [0.1, 0.2, 0.7], atol=0.02)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.floats(0.05, 1.0), min_size=2, max_size=6), st.integers(50, 300))
def test_an_even_draw_has_every_share_up_to_rounding(weights: list[float], n: int) -> None:
    noise = mixture(len(weights))
    shares = torch.tensor(weights) / sum(weights)
    noise.log_weights.copy_(shares.log())
    drawn, component = noise.draw_evenly(n, CPU)
    assert drawn.shape == (n, 2)
    assert ((torch.bincount(component, minlength=len(weights)) - n * shares).abs() <= 1.01).all()


def test_weights_tend_to_those_of_the_target() -> None:
    """Each component covers one mode of weight p, so that log u/q is log p/q throughout it."""
    target, noise = torch.tensor([0.05, 0.15, 0.3, 0.5]), mixture(4)
    for _ in range(200):
        _, component = noise.draw_evenly(64, CPU)
        noise.reweight(component, (target.log() - noise.log_weights)[component], rate=0.1)
    torch.testing.assert_close(noise.log_weights.softmax(0), target, rtol=0.02, atol=0)


def test_one_step_is_the_naive_mean_over_each_component() -> None:
    noise, component, ratio = mixture(3), torch.tensor([0, 0, 2, 2, 2]), torch.tensor([0.1, 0.5, -0.4, 0.2, 0.9])
    before = noise.log_weights.clone()
    noise.reweight(component, ratio, rate=0.5)
    excess = (ratio - ratio.mean()).tolist()
    means = [np.mean([e for c, e in zip(component.tolist(), excess, strict=True) if c == k] or [0.0]) for k in range(3)]
    expected = (before + 0.5 * torch.tensor(means, dtype=torch.float32)).log_softmax(0)
    torch.testing.assert_close(noise.log_weights, expected)


@pytest.mark.parametrize("ratio", [-1e6, 1e6])
def test_no_component_dies_of_one_huge_ratio(ratio: float) -> None:
    noise, component = mixture(4), torch.arange(4)
    for _ in range(100):
        noise.reweight(component, torch.tensor([ratio, 0.0, 0.0, 0.0]), rate=1.0)
    assert noise.log_weights.isfinite().all()
    assert float(noise.log_weights.min()) > math.log(0.01 / 4)


def test_unused_components_are_never_drawn_after_training() -> None:
    noise, component = mixture(4), torch.arange(4)
    for _ in range(100):
        noise.reweight(component, torch.tensor([-9.0, 0.0, 0.0, 0.1]), rate=0.2)
    noise.drop_unused()
    _, drawn = noise.draw_evenly(10_000, CPU)
    assert torch.bincount(drawn, minlength=4)[0] == 0
    assert (torch.bincount(drawn, minlength=4)[1:] > 0).all()


def test_means_and_standard_deviations_are_those_of_the_draws_and_are_trained() -> None:
    noise = mixture(2)
    with torch.no_grad():
        noise.scaled_means.add_(1.0)
        noise.scaled_log_spread[1].sub_(0.3)
    drawn, component = noise.draw_evenly(100_000, CPU, torch.Generator().manual_seed(0))
    for k in range(2):
        own = drawn[component == k].detach()
        torch.testing.assert_close(own.mean(0), noise.means[k].detach(), atol=0.01, rtol=0)
        torch.testing.assert_close(own.std(0), noise.spread[k].detach(), atol=0, rtol=0.02)
    assert float((noise.spread[1] / noise.spread[0]).max().detach()) < 0.3
    drawn.square().mean().backward()
    assert all(float(weight.grad.abs().min()) > 0 for weight in noise.parameters() if weight.grad is not None)
    assert all(weight.grad is not None for weight in noise.parameters())
