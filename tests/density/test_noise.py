"""Noise models against torch.distributions, in double precision."""

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

from offmap.density.noise import NOISES, Bernoulli, Gaussian

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
    assert_close(Bernoulli().log_prob(X, output), expected)
    pi = output.sigmoid()
    assert_close(Bernoulli().mean(output), pi)
    naive = (X * pi.clamp(1e-300).log() + (1 - X) * (1 - pi).clamp(1e-300).log()).flatten(1).sum(1)
    moderate = (output.abs() < 20).flatten(1).all(1)
    assert_close(Bernoulli().log_prob(X, output)[moderate], naive[moderate], rtol=1e-6, atol=1e-6)


@settings(deadline=None)
@given(features)
def test_gaussian_has_unit_variance(rows: tuple[Tensor, Tensor]) -> None:
    X, output = rows
    assert_close(Gaussian().log_prob(X, output), Normal(output, 1.0).log_prob(X).flatten(1).sum(1))
    assert_close(Gaussian().mean(output), output)


@pytest.mark.parametrize("value", [-0.001, 1.001, 5.0, -5.0])
def test_values_outside_0_to_1_are_impossible_under_bernoulli(value: float) -> None:
    """The formula alone would call a value of 5 likelier than any other where the model expects 1."""
    X = torch.tensor([[1.0, value], [1.0, 0.5]])
    found = Bernoulli().log_prob(X, torch.full((2, 2), 20.0))
    assert found[0] == -torch.inf
    assert found[1].isfinite()


def test_names() -> None:
    assert {name: noise.__name__.lower() for name, noise in NOISES.items()} == {name: name for name in NOISES}
