"""Importance weights that are worth at least half of their draws."""

import pytest
import torch
from torch.testing import assert_close

from offmap.density.vae.importance import importance_weights


def worth(weights: torch.Tensor) -> torch.Tensor:
    return 1 / weights.square().sum(0)


def test_weights_that_are_even_enough_stay_as_they_are() -> None:
    log_weights = torch.tensor([[0.1, -3.0], [0.0, -2.6], [-0.4, -2.9], [0.3, -3.2]])
    assert (worth(log_weights.softmax(0)) > 2).all()
    assert_close(importance_weights(log_weights), log_weights.softmax(0))


@pytest.mark.parametrize("draws", [2, 8, 16])
def test_uneven_weights_are_worth_half_of_the_draws(draws: int) -> None:
    log_weights = 300 * torch.randn(draws, 50, generator=torch.Generator().manual_seed(0))
    weights = importance_weights(log_weights)
    assert_close(weights.sum(0), torch.ones(50))
    assert_close(worth(weights), torch.full((50,), draws / 2), rtol=2e-2, atol=0.0)
    assert (worth(weights) >= draws / 2 - 1e-3).all()
    assert_close(weights.argsort(0), log_weights.argsort(0))


def test_the_exponent_is_the_one_found_by_a_fine_grid() -> None:
    log_weights = torch.tensor([0.0, -5.0, -9.0, -20.0], dtype=torch.float64)
    exponents = torch.linspace(0, 1, 100_001, dtype=torch.float64)
    found = worth((exponents * log_weights[:, None]).softmax(0)) >= 2
    best = exponents[found.nonzero().max()]
    assert_close(importance_weights(log_weights[:, None])[:, 0], (best * log_weights).softmax(0), rtol=1e-3, atol=1e-6)


def test_each_row_has_an_exponent_of_its_own() -> None:
    even, uneven = torch.tensor([0.0, 0.1, 0.2, 0.3]), torch.tensor([0.0, 50.0, 100.0, 200.0])
    both = importance_weights(torch.stack([even, uneven], dim=1))
    assert_close(both[:, 0], even.softmax(0))
    assert_close(both[:, 1], importance_weights(uneven[:, None])[:, 0])


def test_one_draw_has_all_the_weight() -> None:
    assert_close(importance_weights(torch.tensor([[-1e9, 3.0]])), torch.ones(1, 2))
