"""Levels of entities against NumPy's moments, whole and in pieces."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from offmap.collaborative.levels import PRIOR_ROWS, merged, own_levels, pooled, standardised
from offmap.collaborative.observations import Observations


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 1000))
def test_levels_in_two_pieces_are_those_of_the_whole(first: int, second: int, seed: int) -> None:
    novelty = torch.from_numpy(np.random.default_rng(seed).normal(3, 2, size=first + second))

    def levels(values: torch.Tensor) -> torch.Tensor:
        observed = Observations(
            torch.zeros(len(values), 1), torch.arange(len(values)), torch.zeros(len(values), dtype=torch.int64)
        )
        return own_levels(values, observed)

    whole = levels(novelty)
    expected = torch.tensor([[float(novelty.mean()), float(novelty.var(correction=0))]])
    torch.testing.assert_close(whole, expected, rtol=1e-4, atol=1e-4)
    sizes = torch.tensor([float(first)]), torch.tensor([float(second)])
    both = merged(levels(novelty[:first]), sizes[0], levels(novelty[first:]), sizes[1])
    torch.testing.assert_close(both, whole, rtol=1e-4, atol=1e-4)


def test_an_entity_of_many_rows_has_its_own_level_and_one_of_none_that_of_all() -> None:
    levels, counts = torch.tensor([[1.0, 4.0], [-2.0, 9.0]]), torch.tensor([1e9, 0.0])
    common = pooled(torch.tensor([[0.0, 1.0], [6.0, 16.0]]), torch.tensor([1.0, 1.0]))
    torch.testing.assert_close(common, torch.tensor([3.0, 4.0]))
    found = standardised(torch.tensor([5.0, 5.0], dtype=torch.float64), levels, counts, common)
    np.testing.assert_allclose(found.numpy(), [(5 - 1) / 2, (5 - 3) / 2], rtol=1e-5)


def test_an_entity_of_as_many_rows_as_the_prior_lies_half_way_and_its_spread_with_one_more() -> None:
    counts = PRIOR_ROWS + torch.tensor([0.0, 1.0])
    levels, common = torch.tensor([[2.0, 1.0], [4.0, 1.0]]), torch.tensor([4.0, 16.0])
    found = standardised(torch.zeros(2, dtype=torch.float64), levels, counts, common)
    np.testing.assert_allclose(found.numpy(), [-3 / 16 ** (5 / 19), -4 / 2], rtol=1e-6)


def test_single_rows_tell_nothing_of_the_common_spread() -> None:
    common = pooled(torch.tensor([[1.0, 0.0], [4.0, 9.0]]), torch.tensor([1.0, 2.0]))
    torch.testing.assert_close(common, torch.tensor([3.0, 9.0]))
    alone = pooled(torch.tensor([[1.0, 0.0], [3.0, 0.0]]), torch.tensor([1.0, 1.0]))
    torch.testing.assert_close(alone, torch.tensor([2.0, 1e-6]))
