"""What each strategy raises, against InfoNCE written out."""

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from offmap.dependence.views import STRATEGIES, Strategy


def written_out(a: Tensor, b: Tensor, temperature: float = 0.05) -> float:
    """InfoNCE of two views on cosines, pair by pair."""
    total = 0.0
    for row in range(len(a)):
        scores = [float(torch.cosine_similarity(a[row], other, dim=0)) / temperature for other in b]
        total += scores[row] - math.log(sum(map(math.exp, scores)) / len(scores))
    return total / len(a)


@pytest.fixture
def views() -> list[Tensor]:
    torch.manual_seed(0)
    base = torch.randn(6, 5)
    return [base + 0.8 * torch.randn(6, 5) for _ in range(4)]


def expected(name: str, views: Sequence[Tensor]) -> float:
    a, b, c, d = views
    pairs = {
        "core_view": [(a, b), (a, c), (a, d)],
        "full_graph": [(a, b), (a, c), (a, d), (b, c), (b, d), (c, d)],
        "tc_tree": [(a, b), (c, d), (torch.cat([a, b], 1), torch.cat([c, d], 1))],
    }
    return -sum(written_out(*pair) for pair in pairs[name])


@pytest.mark.parametrize("name", ["core_view", "full_graph", "tc_tree"])
def test_strategies_over_all_views(name: str, views: list[Tensor]) -> None:
    strategy = STRATEGIES[name]
    assert strategy.choose(4) == [0, 1, 2, 3]
    assert float(strategy.loss(views)) == pytest.approx(expected(name, views), rel=1e-4)


@pytest.mark.parametrize("name", ["mi_fix", "mi_sample"])
def test_strategies_over_two_views(name: str, views: list[Tensor]) -> None:
    assert float(STRATEGIES[name].loss(views[:2])) == pytest.approx(-written_out(views[0], views[1]), rel=1e-4)


def test_only_one_of_the_two_draws_its_views() -> None:
    assert {tuple(STRATEGIES["mi_fix"].choose(4)) for _ in range(50)} == {(0, 1)}
    torch.manual_seed(0)
    drawn = {frozenset(STRATEGIES["mi_sample"].choose(4)) for _ in range(200)}
    assert len(drawn) == 6


def test_the_temperature_sharpens(views: list[Tensor]) -> None:
    loss = STRATEGIES["mi_fix"].loss(views[:2], temperature=0.5)
    assert float(loss) == pytest.approx(-written_out(views[0], views[1], temperature=0.5), rel=1e-4)


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_view_that_is_made_learns(name: str, views: list[Tensor]) -> None:
    made = [view.requires_grad_() for view in views[: len(STRATEGIES[name].choose(4))]]
    STRATEGIES[name].loss(made).backward()
    assert all(view.grad is not None and view.grad.abs().sum() > 0 for view in made)


def test_any_strategy_can_be_made(views: list[Tensor]) -> None:
    ring = Strategy("neighbouring views", lambda n: [*range(n)], lambda n: [(a, (a + 1) % n) for a in range(n)])
    a, b, c, d = views
    pairs = [(a, b), (b, c), (c, d), (d, a)]
    assert float(ring.loss(views)) == pytest.approx(-sum(written_out(*pair) for pair in pairs), rel=1e-4)


def test_a_total_correlation_needs_halves(views: list[Tensor]) -> None:
    with pytest.raises(ValueError, match="views must be a power of 2 for a total correlation"):
        STRATEGIES["tc_tree"].loss(views[:3])
    STRATEGIES["full_graph"].check(3)
