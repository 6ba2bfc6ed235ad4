"""The staircase: an estimator is trained while the total correlation of its data rises from level to level."""

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from offmap.dependence import SaturationWarning, TotalCorrelation
from offmap.dependence.estimator import Estimator
from offmap.random_state import local_seed
from offmap.train import Batch, descend, train

LEVELS = (2, 4, 6, 8, 10)
# Seeds that climb side by side. Later ones were added for rows whose spread is in question.
SEED_GROUPS = (range(2), range(2, 3), range(3, 8))
SEEDS = range(3)
LAST = 500


def draw_groups(total: float, width: int, *shape: int) -> list[Tensor]:
    """Draws four Gaussian variables ``(…, width)`` in two independent pairs that share ``total`` nats in all."""
    correlation = math.sqrt(1 - math.exp(-total / width))
    rest = math.sqrt(1 - correlation**2)
    first, second, noise, other = torch.randn(4, *shape, width)
    return [first, correlation * first + rest * noise, second, correlation * second + rest * other]


@dataclass(frozen=True, kw_only=True)
class Climb:
    """One estimator that is trained on all levels of total correlation, one after another.

    Args:
        decomposition: "line" or "tree".
        estimator: Name of the estimator.
        settings: Settings of the estimator, as pairs of name and value; "hidden" holds the widths of the hidden layers
            of all terms, or one tuple of widths per term.
        lr: Learning rate of Adam.
        width: Columns of each of the four variables.
        steps: Steps per level, each on fresh rows.
        batch_size: Rows per step.
    """

    decomposition: str
    estimator: str
    settings: tuple[tuple[str, Any], ...] = (("hidden", (15,)),)
    lr: float = 1e-3
    width: int = 20
    steps: int = 4000
    batch_size: int = 64


@dataclass(frozen=True)
class Level:
    """Draws fresh batches of every seed at one level of total correlation."""

    climb: Climb
    total: float
    seeds: int

    def __len__(self) -> int:
        return self.climb.steps

    def __iter__(self) -> Iterator[Batch]:
        for _ in range(self.climb.steps):
            yield tuple(draw_groups(self.total, self.climb.width, self.seeds, self.climb.batch_size))


class SideBySide:
    """The estimators of several seeds as stacks of equal hidden layers; a step of all costs little more than of one."""

    def __init__(self, climb: Climb, seeds: int) -> None:
        self.seeds = seeds
        settings = dict(climb.settings)
        terms = hidden_by_term(climb)
        self.sum = TotalCorrelation(
            [climb.width] * 4,
            decomposition=climb.decomposition,
            estimator=climb.estimator,
            **settings | {"hidden": terms[0]},
        )
        self.places = {hidden: [place for place, own in enumerate(terms) if own == hidden] for hidden in terms}
        self.stacks = nn.ModuleList(self._stack(settings | {"hidden": hidden}) for hidden in self.places)
        self.optimizer = Adam(self.stacks.parameters(), lr=climb.lr)
        self.descent = descend(self.optimizer, lambda batch: {"loss": torch.stack(self._losses(batch)).sum()})
        self.values: list[Tensor] = []

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Records the value of each seed, then trains."""
        with torch.no_grad():
            values = [stack.value(*pairs).unflatten(0, (self.seeds, -1)).sum(1) for stack, pairs in self._parts(batch)]
        self.values.append(torch.stack(values).sum(0))
        return self.descent(batch)

    def _stack(self, settings: dict[str, Any]) -> Estimator:
        one, places = self.sum.estimator, self.places[settings["hidden"]]
        widths = ([wide[place] for place in places] * self.seeds for wide in (one.x_widths, one.y_widths))
        return type(one)(*widths, **settings)

    def _losses(self, batch: Batch) -> list[Tensor]:
        return [stack.loss(*pairs) for stack, pairs in self._parts(batch)]

    def _parts(self, batch: Batch) -> Iterator[tuple[Any, list[Tensor]]]:
        """Each stack with both sides of its terms of each seed, without the padding that they do not need."""
        pairs = [self.sum.pairs(groups) for groups in zip(*batch, strict=True)]
        stacks: Iterable[Any] = self.stacks
        for stack, places in zip(stacks, self.places.values(), strict=True):
            sides = zip(zip(*pairs, strict=True), (stack.x_widths, stack.y_widths), strict=True)
            yield stack, [torch.cat([own[places, :, : max(wide)] for own in side]) for side, wide in sides]


def hidden_by_term(climb: Climb) -> list[tuple[int, ...]]:
    """Returns the widths of the hidden layers of each of the three terms."""
    hidden = dict(climb.settings)["hidden"]
    return [tuple(own) for own in hidden] if isinstance(hidden[0], tuple) else [tuple(hidden)] * 3


@lru_cache(maxsize=64)
def climbed(climb: Climb, seeds: range = SEED_GROUPS[0]) -> NDArray[np.float64]:
    """Returns the value before each step, ``(seeds, levels, steps)``, of seeds that climb side by side."""
    with local_seed(seeds.start), warnings.catch_warnings():
        warnings.simplefilter("ignore", SaturationWarning)
        climbers = SideBySide(climb, len(seeds))
        for total in LEVELS:
            state: dict[str, nn.Module | Optimizer] = {"stacks": climbers.stacks, "optimizer": climbers.optimizer}
            level = Level(climb, total, len(seeds))
            train(climbers.step, level, epochs=1, state=state, label=f"total correlation {total}")
    return torch.stack(climbers.values, dim=1).double().numpy().reshape(len(seeds), len(LEVELS), -1)


def end_of_level(climb: Climb, total: int, seed: int, groups: Sequence[range] = SEED_GROUPS) -> NDArray[np.float64]:
    """Returns the values before the last steps of the level ``total``, of one seed of one of the ``groups``."""
    seeds = next(group for group in groups if seed in group)
    return climbed(climb, seeds)[seed - seeds.start, LEVELS.index(total), -LAST:]
