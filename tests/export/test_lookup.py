"""P-values by table look-up, and the functions that stand in for those that ONNX lacks."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from offmap.calibration import Promise
from offmap.export.lookup import PValues, places
from offmap.export.substitutes import Substitutes, normal_quantile

numbers = st.lists(st.one_of(st.integers(-3, 3).map(float), st.just(np.inf), st.just(-np.inf)), min_size=1, max_size=40)


@given(numbers, numbers, st.booleans())
def test_places_are_those_of_searchsorted(values: list[float], wanted: list[float], right: bool) -> None:
    ordered = np.sort(values)
    found = places(torch.tensor(ordered), torch.tensor(wanted), right=right)
    np.testing.assert_array_equal(found.numpy(), np.searchsorted(ordered, wanted, side="right" if right else "left"))


def test_places_in_one_row_of_values_per_row() -> None:
    rng = np.random.default_rng(0)
    values, wanted = np.sort(rng.normal(size=(3, 50)), axis=1), rng.normal(size=(3, 7))
    expected = torch.searchsorted(torch.from_numpy(values), torch.from_numpy(wanted))
    assert places(torch.from_numpy(values), torch.from_numpy(wanted)).equal(expected)


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_looked_up_p_values_are_those_of_the_promise(confidence: float | None) -> None:
    rng = np.random.default_rng(1)
    promise = Promise(confidence=confidence).fit(np.r_[rng.normal(size=300).round(1), np.inf])
    novelty = np.r_[rng.normal(size=200).round(1), -np.inf, np.inf, 99.0]
    found = PValues(promise)(torch.from_numpy(novelty))
    np.testing.assert_array_equal(found.numpy(), promise.p_value(novelty))


def test_the_quantile_of_the_normal_distribution() -> None:
    p = np.r_[np.geomspace(1e-300, 0.4, 400), np.linspace(0.01, 0.99, 401), 1 - np.geomspace(1e-15, 0.4, 200)]
    np.testing.assert_allclose(normal_quantile(torch.from_numpy(p)).numpy(), norm.ppf(p), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("mode", ["donot_use_mm_for_euclid_dist", "use_mm_for_euclid_dist_if_necessary"])
def test_substitutes_have_the_values_of_the_originals(mode: str) -> None:
    rows, others = torch.randn(5, 3, generator=torch.manual_seed(0)), torch.randn(40, 3, generator=torch.manual_seed(1))
    ties = torch.tensor([[2.0, 1.0, 2.0, 0.0]])
    radii = torch.tensor([0.5, 1.0, 1.0 + 2**-50, 3.7], dtype=torch.float64)
    below = radii.nextafter(torch.full_like(radii, -torch.inf))
    with Substitutes():
        found = torch.cdist(rows, others, compute_mode=mode)
        order = ties.argsort(dim=1, descending=True, stable=True)
        smaller = radii.nextafter(torch.full_like(radii, -torch.inf))
    torch.testing.assert_close(found, torch.cdist(rows, others))
    assert order.tolist() == [[0, 2, 1, 3]]
    assert smaller.equal(below)


def test_draws_are_repeated() -> None:
    substitutes = Substitutes()
    with substitutes.again():
        first = [torch.randn(3), torch.randn(3)]
    with substitutes.again():
        second = [torch.randn(3), torch.randn(3)]
    assert all(a.equal(b) for a, b in zip(first, second, strict=True))
    assert not first[0].equal(first[1])
