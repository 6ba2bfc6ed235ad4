"""Exposures: which row was shown to which task."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor


@dataclass(frozen=True)
class Exposures:
    """Rows, and pairs of a row and a task; a row may be shown to many tasks and is kept once.

    Args:
        X: The rows, as the networks take them.
        index: Row of each exposure.
        tasks: Code 0, 1, … of the task of each exposure; every code occurs.
        labels: Code of the label of each row of ``X``, if there are labels.
    """

    X: Tensor
    index: Tensor
    tasks: Tensor
    labels: Tensor | None = None

    def __len__(self) -> int:
        return len(self.index)

    @property
    def counts(self) -> Tensor:
        """Exposures of each task."""
        return torch.bincount(self.tasks)

    @property
    def weights(self) -> Tensor:
        """How often each row of ``X`` was shown."""
        return torch.bincount(self.index, minlength=len(self.X)).float()

    def task_means(self, values: Tensor) -> Tensor:
        """The mean over each task's exposures of ``values``, which has one row for each row of ``X``.

        Example:
            >>> shown = Exposures(torch.zeros(2, 1), torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]))
            >>> shown.task_means(torch.tensor([[2.0], [4.0]]))
            tensor([[3.],
                    [4.]])
        """
        counts = self.counts
        sums = values.new_zeros(len(counts), values.shape[1])
        for index, tasks in zip(self.index.split(_PIECE), self.tasks.split(_PIECE), strict=True):
            sums.index_add_(0, tasks, values[index])
        return sums / counts.unsqueeze(1)

    def only(self, kept: Tensor) -> "Exposures":
        """The exposures of the tasks with the codes ``kept``, which become 0, 1, …."""
        codes = torch.full((int(self.tasks.max()) + 1,), -1, device=self.tasks.device)
        codes[kept] = torch.arange(len(kept), device=self.tasks.device)
        tasks = codes[self.tasks]
        return Exposures(self.X, self.index[tasks >= 0], tasks[tasks >= 0], self.labels)

    def split(self, share: float) -> tuple["Exposures", "Exposures"]:
        """Parts off a random share of the exposures; the first drawn of each task stays in the first part."""
        order = torch.randperm(len(self), device=self.index.device)
        first = torch.full((len(self.counts),), len(self), device=self.index.device)
        first.scatter_reduce_(0, self.tasks[order], torch.arange(len(self), device=self.index.device), "amin")
        free = torch.ones(len(self), dtype=torch.bool, device=self.index.device)
        free[first] = False
        apart = order[free][: round(share * len(self))]
        stays = torch.ones(len(self), dtype=torch.bool, device=self.index.device)
        stays[apart] = False
        return self.at(stays), self.at(~stays)

    def at(self, chosen: Tensor) -> "Exposures":
        """Some of the exposures, with the same rows, tasks and codes."""
        return Exposures(self.X, self.index[chosen], self.tasks[chosen], self.labels)


def check_index(rows: ArrayLike | None, length: int, exposures: int) -> NDArray[np.int64]:
    """The row of ``X`` that each exposure is of, from the argument ``rows``."""
    if rows is None:
        if length != exposures:
            raise ValueError(f"tasks must have one id for each of the {length} rows of X; got {exposures}")
        return np.arange(length)
    index = np.asarray(rows)
    if index.dtype.kind not in "iu" or index.shape != (exposures,):
        found = f"{index.dtype} of shape {index.shape}"
        raise ValueError(f"rows must hold one integer for each of the {exposures} tasks; got {found}")
    if len(index) and (index.min() < 0 or index.max() >= length):
        raise ValueError(f"rows must be from 0 to {length - 1}, the rows of X; got {index.min()} to {index.max()}")
    return index.astype(np.int64, copy=False)


# Exposures whose values are gathered at once.
_PIECE = 65536
