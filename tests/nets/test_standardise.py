"""Standardised features against NumPy in double precision."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from offmap.nets import Standardise

Array = NDArray[np.float32]
columns = hnp.arrays(np.float32, st.tuples(st.integers(2, 30), st.integers(1, 4)), elements=st.floats(-1, 1, width=32))


def standardised(X: Array, rows: Array | None = None) -> Array:
    return Standardise(X.shape[1]).fit(torch.from_numpy(X))(torch.from_numpy(X if rows is None else rows)).numpy()


@settings(deadline=None)
@given(columns, st.sampled_from([1e-6, 1.0, 1e6]), st.sampled_from([0.0, 3.0, -500.0]))
def test_features_get_mean_0_and_deviation_1(noise: Array, spread: float, mean: float) -> None:
    X = (noise * spread + mean * spread).astype(np.float32)
    precise = X.astype(np.float64)
    deviation = precise.std(axis=0)
    free = deviation > 1e-4 * spread
    expected = (precise - precise.mean(axis=0)) / np.where(free, deviation, 1)
    # The mean is kept as a float32 too: that rounding, in deviations, is what the result may be off by.
    rounding = 2e-7 * np.abs(precise).max() / np.where(free, deviation, 1).min()
    np.testing.assert_allclose(standardised(X)[:, free], expected[:, free], rtol=1e-5, atol=1e-5 + rounding)


@pytest.mark.parametrize(("value", "size"), [(0.0, 1.0), (5.0, 1.0), (0.1, 0.1), (-1e-3, 1e-3)])
def test_a_constant_feature_is_shifted_and_divided_by_its_size_if_that_is_small(value: float, size: float) -> None:
    X = np.full((1000, 1), value, dtype=np.float32)
    assert (standardised(X) == 0).all()
    np.testing.assert_allclose(standardised(X, X + np.float32(2)), 2.0 / size, rtol=1e-6)


def test_a_single_row_is_constant() -> None:
    assert (standardised(np.array([[3.0, -7.0]], dtype=np.float32)) == 0).all()


@pytest.mark.parametrize(("mean", "spread"), [(1e6, 10.0), (1.7e9, 600.0), (-1e8, 50.0), (1e30, 1e26)])
def test_a_feature_with_a_huge_mean_is_standardised_as_far_as_float32_tells_it(mean: float, spread: float) -> None:
    """Times in seconds since 1970, of an hour: unscaled, such a column makes every loss explode."""
    X = (mean + spread * np.random.default_rng(0).normal(size=(2000, 1))).astype(np.float32)
    Z = standardised(X).astype(np.float64)
    assert abs(Z.mean()) < 0.3
    assert 0.9 < Z.std() < 1.1
    assert np.corrcoef(Z[:, 0], X[:, 0].astype(np.float64))[0, 1] > 0.999


def test_rounding_of_a_huge_constant_is_not_blown_up() -> None:
    X = (1.7e9 + np.random.default_rng(0).normal(size=(2000, 1))).astype(np.float32)
    assert np.abs(standardised(X)).max() <= 1
    neighbours = np.array([[1.7e9], [1.7e9], [1.7e9 + 128]], dtype=np.float32)
    assert np.abs(standardised(neighbours)).max() <= 1


def test_the_measures_are_saved_with_the_network_and_not_trained() -> None:
    layer = Standardise(2).fit(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
    assert {name: tensor.tolist() for name, tensor in layer.state_dict().items()} == {
        "mean": [2.0, 4.0],
        "scale": [1.0, 2.0],
    }
    assert list(layer.parameters()) == []


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1.0, 1e3])
def test_a_change_of_a_constant_counts_in_any_unit(unit: float) -> None:
    layer = Standardise(1).fit(torch.full((5, 1), unit))
    assert layer(torch.tensor([[100 * unit]])).item() >= 98
