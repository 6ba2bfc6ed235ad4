"""Batches for one-versus-rest heads that train side by side."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from offmap.train import Batch

# The code of rows whose class has a head that is not trained.
NO_HEAD = -1


@final
@dataclass(frozen=True)
class HeadBatches:
    """Draws, for every head at once, indices of rows of its own class and of rows of other classes.

    Args:
        y: The class of each row; those without a head (-1) are rows of another class for every head.
        classes: Number of classes, and of heads.
        n_own: Rows of its own class that each head sees per step.
        n_rest: Rows of other classes per row of its own.
        steps: Steps per epoch.
    """

    y: Tensor
    classes: int
    n_own: int
    n_rest: int
    steps: int

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Batch]:
        without = self.y == NO_HEAD
        counts = torch.bincount(self.y[~without], minlength=self.classes)[:, None]
        by_class = self.y.argsort(stable=True)
        first = without.sum() + counts.cumsum(0) - counts
        for _ in range(self.steps):
            own = first + self._below(counts, self.n_own)
            others = self._below(len(self.y) - counts, self.n_own * self.n_rest)
            # Positions from the first own row on are moved past the own rows.
            others = others + (others >= first) * counts
            yield by_class[own], by_class[others]

    def _below(self, limits: Tensor, count: int) -> Tensor:
        """Draws integers from 0 up to each limit, the limit excluded."""
        drawn = torch.rand(self.classes, count, dtype=torch.float64, device=limits.device)
        return (drawn * limits).long()
