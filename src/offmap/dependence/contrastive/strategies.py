r"""Which of several views of a text are drawn together: pairs of them, or all by their total correlation.

Every strategy maximises InfoNCE with the cosine of two views over a temperature as its score, so that they differ in
nothing but the pairs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import torch
from torch import Tensor

from offmap.dependence import InfoNCE, TotalCorrelation
from offmap.dependence.critics import CosineCritic

Pairs = list[tuple[int, int]]


@dataclass(frozen=True)
class Strategy:
    """One way to draw the views of a text together.

    Args:
        about: What it does, in words.
        chosen: Names the views of one step, out of so many; only these are made.
        pairs: The pairs among the chosen views whose mutual information is raised; with none, their total correlation.
    """

    about: str
    chosen: Callable[[int], list[int]]
    pairs: Callable[[int], Pairs] | None

    def loss(self, views: Sequence[Tensor], temperature: float = 0.05) -> Tensor:
        """Minus what is raised, in nats, of views ``(n, width)``."""
        width, critic = views[0].shape[1], partial(CosineCritic, temperature=temperature)
        if self.pairs is None:
            total = TotalCorrelation([width] * len(views), decomposition="tree", estimator="infonce", critic=critic)
            return total.to(views[0].device).loss(views)
        pairs = self.pairs(len(views))
        left, right = (torch.stack([views[pair[side]] for pair in pairs]) for side in (0, 1))
        return InfoNCE([width] * len(pairs), [width] * len(pairs), critic=critic).loss(left, right)


def _first_two(views: int) -> list[int]:
    return [0, 1]


def _random_two(views: int) -> list[int]:
    return torch.randperm(views)[:2].tolist()


def _all(views: int) -> list[int]:
    return [*range(views)]


def _every_pair(views: int) -> Pairs:
    return [*combinations(range(views), 2)]


def _first_with_each(views: int) -> Pairs:
    return [(0, other) for other in range(1, views)]


STRATEGIES = {
    "mi-fix": Strategy("the first two views", _first_two, _every_pair),
    "mi-sample": Strategy("two views drawn at random", _random_two, _every_pair),
    "core-view": Strategy("the first view with each other one", _all, _first_with_each),
    "full-graph": Strategy("every view with every other one", _all, _every_pair),
    "tc-tree": Strategy("all views by their total correlation, split in halves", _all, None),
}
