"""Likelihoods against torch.distributions, in double precision."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor
from torch.distributions import Bernoulli as TorchBernoulli
from torch.distributions import Normal
from torch.testing import assert_close

from offmap.density.vae.likelihoods import LIKELIHOODS, Bernoulli, Gaussian, LearnedGaussian, QuantizedGaussian

shapes = hnp.array_shapes(min_dims=2, max_dims=4, max_side=5)


def tensors(shape: Any, low: float, high: float) -> Any:
    return hnp.arrays(np.float64, shape, elements=st.floats(low, high)).map(torch.from_numpy)


intensities = shapes.flatmap(lambda shape: st.tuples(tensors(shape, 0, 1), tensors(shape, -50, 50)))
features = shapes.flatmap(lambda shape: st.tuples(tensors(shape, -50, 50), tensors(shape, -50, 50)))


@settings(deadline=None)
@given(intensities)
def test_bernoulli(rows: tuple[Tensor, Tensor]) -> None:
    X, output = rows
    expected = TorchBernoulli(logits=output, validate_args=False).log_prob(X).flatten(1).sum(1)
    noise = Bernoulli(tuple(X.shape[1:]))
    assert_close(noise.log_prob(X, output), expected)
    pi = output.sigmoid()
    assert_close(noise.mean(output), pi)
    naive = (X * pi.clamp(1e-300).log() + (1 - X) * (1 - pi).clamp(1e-300).log()).flatten(1).sum(1)
    moderate = (output.abs() < 20).flatten(1).all(1)
    assert_close(noise.log_prob(X, output)[moderate], naive[moderate], rtol=1e-6, atol=1e-6)


@settings(deadline=None)
@given(features)
def test_gaussian_has_unit_variance(rows: tuple[Tensor, Tensor]) -> None:
    X, output = rows
    noise = Gaussian(tuple(X.shape[1:]))
    assert_close(noise.log_prob(X, output), Normal(output, 1.0).log_prob(X).flatten(1).sum(1))
    assert_close(noise.mean(output), output)


@settings(deadline=None, max_examples=50)
@given(features, st.floats(-0.5, 0.5))
def test_learned_gaussian_is_normal_with_its_scale(rows: tuple[Tensor, Tensor], raw: float) -> None:
    X, output = rows
    noise = LearnedGaussian(tuple(X.shape[1:])) if X.ndim in (2, 4) else LearnedGaussian((1, *X.shape[1:]))
    X, output = (part.unsqueeze(1) if part.ndim == 3 else part for part in (X, output))
    noise = noise.double()
    with torch.no_grad():
        noise.raw.copy_(raw + torch.linspace(0, 0.1, noise.raw.numel()).reshape(noise.raw.shape))
        expected = Normal(output, noise.scale.expand(X.shape[1:])).log_prob(X).flatten(1).sum(1)
        assert_close(noise.log_prob(X, output), expected)


def test_learned_scales_are_one_per_feature_or_one_per_image_and_stay_above_a_floor() -> None:
    features, pixels = LearnedGaussian((5,)), LearnedGaussian((3, 4, 4))
    assert features.scale.shape == (5,)
    assert_close(features.scale, torch.ones(5))
    assert pixels.scale.numel() == 1
    with torch.no_grad():
        features.raw.fill_(-100)
    assert_close(features.scale, torch.full((5,), 0.01))
    constant = features.log_prob(torch.zeros(1, 5), torch.zeros(1, 5))
    assert constant.isfinite().all()


def test_the_learned_scale_finds_that_of_the_data() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        X = torch.randn(2000, 2) * torch.tensor([0.2, 3.0])
    noise = LearnedGaussian((2,))
    optimizer = torch.optim.Adam(noise.parameters(), lr=1e-2)
    for _ in range(200):
        optimizer.zero_grad()
        (-noise.log_prob(X, torch.zeros_like(X)).mean()).backward()
        optimizer.step()
    assert_close(noise.scale.detach(), X.square().mean(0).sqrt(), rtol=0.02, atol=0)


def test_quantized_pixels_fill_their_bins_and_score_alike_each_time() -> None:
    X = torch.arange(256.0).reshape(4, 1, 8, 8) / 255
    noise = QuantizedGaussian((1, 8, 8))
    drawn = noise.observed(X)
    assert torch.equal((drawn * 256).floor(), X * 255)
    assert not torch.equal(noise.observed(X), drawn)
    noise.eval()
    fixed = noise.observed(X)
    assert torch.equal(noise.observed(X), fixed)
    assert torch.equal((fixed * 256).floor(), X * 255)
    # The same blur for every row, whatever rows come with it.
    assert torch.equal(noise.observed(X[2:3]), fixed[2:3])
    assert noise.offset.std() > 0.2


@pytest.mark.parametrize("value", [-0.001, 1.001, 5.0, -5.0])
def test_values_outside_0_to_1_are_impossible_under_bernoulli(value: float) -> None:
    """The formula alone would call a value of 5 likelier than any other where the model expects 1."""
    X = torch.tensor([[1.0, value], [1.0, 0.5]])
    found = Bernoulli((2,)).log_prob(X, torch.full((2, 2), 20.0))
    assert found[0] == -torch.inf
    assert found[1].isfinite()


def test_names() -> None:
    assert [*LIKELIHOODS] == ["gaussian_learned", "gaussian", "bernoulli", "quantized_gaussian"]
    for make in LIKELIHOODS.values():
        assert make((2, 3, 3)).mean(torch.zeros(1, 2, 3, 3)).shape == (1, 2, 3, 3)
