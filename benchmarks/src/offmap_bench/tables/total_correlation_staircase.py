"""The staircase: an estimator is trained while the total correlation of its data rises from level to level."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from offmap.dependence import SaturationWarning, TotalCorrelation
from offmap.random_state import local_seed
from offmap.train import Batch, descend, train

LEVELS = (2, 4, 6, 8, 10)
SEEDS = range(2)
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
        settings: Settings of the estimator, as pairs of name and value.
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
    """The estimators of all seeds as one stack; a step of all costs little more than a step of one."""

    def __init__(self, climb: Climb, seeds: int) -> None:
        self.seeds = seeds
        settings = dict(climb.settings)
        self.sum = TotalCorrelation(
            [climb.width] * 4, decomposition=climb.decomposition, estimator=climb.estimator, **settings
        )
        one = self.sum.estimator
        self.stack = type(one)(one.x_widths * seeds, one.y_widths * seeds, **settings)
        self.optimizer = Adam(self.stack.parameters(), lr=climb.lr)
        self.descent = descend(self.optimizer, lambda batch: {"loss": self.stack.loss(*self.pairs(batch))})
        self.values: list[Tensor] = []

    def pairs(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Returns both sides of each term of each seed."""
        left, right = zip(*(self.sum.pairs(groups) for groups in zip(*batch, strict=True)), strict=True)
        return torch.cat(left), torch.cat(right)

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Records the value of each seed, then trains."""
        with torch.no_grad():
            values = self.stack.value(*self.pairs(batch))
        self.values.append(values.unflatten(0, (self.seeds, -1)).sum(1))
        return self.descent(batch)


@lru_cache(maxsize=64)
def climbed(climb: Climb, seeds: int = len(SEEDS)) -> NDArray[np.float64]:
    """Returns the value before each step, ``(seeds, levels, steps)``."""
    with local_seed(0), warnings.catch_warnings():
        warnings.simplefilter("ignore", SaturationWarning)
        climbers = SideBySide(climb, seeds)
        for total in LEVELS:
            state: dict[str, nn.Module | Optimizer] = {"stack": climbers.stack, "optimizer": climbers.optimizer}
            train(climbers.step, Level(climb, total, seeds), epochs=1, state=state, label=f"total correlation {total}")
    return torch.stack(climbers.values, dim=1).double().numpy().reshape(seeds, len(LEVELS), -1)


def end_of_level(climb: Climb, total: int, seed: int, seeds: int = len(SEEDS)) -> NDArray[np.float64]:
    """Returns the values before the last steps of the level ``total``, of one of ``seeds`` that climb together."""
    return climbed(climb, seeds)[seed, LEVELS.index(total), -LAST:]
