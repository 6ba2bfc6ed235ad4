r"""Strategies: which views of a sentence are pulled together, in pairs or all at once by their total correlation.

Every strategy maximises InfoNCE on cosines over a temperature; they differ only in the terms of the sum.
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
    """One way to pull the views of a sentence together.

    Args:
        description: What it does, in words.
        choose: Maps the number of views to the views that one training step uses; only these are computed.
        pairs: Maps the number of chosen views to the pairs whose mutual information is maximised. None maximises the
            total correlation of the chosen views; their number must then be a power of 2.

    Example:
        >>> from itertools import pairwise
        >>> ring = Strategy("neighbouring views", lambda n: [*range(n)], lambda n: [*pairwise(range(n))])
        >>> ring.pairs(4)
        [(0, 1), (1, 2), (2, 3)]
    """

    description: str
    choose: Callable[[int], list[int]]
    pairs: Callable[[int], Pairs] | None

    def check(self, views: int) -> None:
        """Raises a ``ValueError`` if the strategy cannot use this number of views."""
        if self.pairs is None and views & (views - 1):
            raise ValueError(
                f"views must be a power of 2 for a total correlation, which compares halves of them; got {views}"
            )

    def loss(self, views: Sequence[Tensor], temperature: float = 0.05) -> Tensor:
        """Returns minus what is maximised, in nats, for one tensor ``(n, width)`` per chosen view."""
        width, critic = views[0].shape[1], partial(CosineCritic, temperature=temperature)
        if self.pairs is None:
            self.check(len(views))
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
    "mi_fix": Strategy("the first two views", _first_two, _every_pair),
    "mi_sample": Strategy("two views drawn at random in each step", _random_two, _every_pair),
    "core_view": Strategy("the first view with each other view", _all, _first_with_each),
    "full_graph": Strategy("every pair of views", _all, _every_pair),
    "tc_tree": Strategy("all views by their total correlation, split into halves", _all, None),
}
