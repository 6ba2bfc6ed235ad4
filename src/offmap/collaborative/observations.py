"""Which row was observed for which entity."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor


@dataclass(frozen=True)
class Observations:
    """Pairs of a row and an entity. A row that belongs to several entities is kept once.

    Args:
        X: The rows, as the networks take them.
        index: Row of ``X`` of each observation.
        entities: Code 0, 1, … of the entity of each observation; every code occurs.
        labels: Code of the label of each row of ``X``, if there are labels.
    """

    X: Tensor
    index: Tensor
    entities: Tensor
    labels: Tensor | None = None

    def __len__(self) -> int:
        return len(self.index)

    @property
    def counts(self) -> Tensor:
        """Number of observations of each entity."""
        return torch.bincount(self.entities)

    @property
    def weights(self) -> Tensor:
        """Number of observations of each row of ``X``."""
        return torch.bincount(self.index, minlength=len(self.X)).float()

    def entity_means(self, values: Tensor) -> Tensor:
        """The mean of ``values`` over the observations of each entity; ``values`` has one row per row of ``X``.

        Example:
            >>> observed = Observations(torch.zeros(2, 1), torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]))
            >>> observed.entity_means(torch.tensor([[2.0], [4.0]]))
            tensor([[3.],
                    [4.]])
        """
        counts = self.counts
        sums = values.new_zeros(len(counts), values.shape[1])
        for index, entities in zip(self.index.split(_PIECE), self.entities.split(_PIECE), strict=True):
            sums.index_add_(0, entities, values[index])
        return sums / counts.unsqueeze(1)

    def rows_by_entity(self) -> tuple[Tensor, ...]:
        """The rows of ``X`` of each entity, in the order of the codes."""
        return self.index[torch.argsort(self.entities, stable=True)].split(self.counts.tolist())

    def sample(self, size: int) -> Tensor:
        """Rows of ``X`` drawn with replacement, each as often as it is observed."""
        return self.index[torch.randint(len(self), (size,), device=self.index.device)]

    def only(self, kept: Tensor) -> "Observations":
        """The observations of the entities with the codes ``kept``, which become 0, 1, …."""
        codes = torch.full((int(self.entities.max()) + 1,), -1, device=self.entities.device)
        codes[kept] = torch.arange(len(kept), device=self.entities.device)
        entities = codes[self.entities]
        return Observations(self.X, self.index[entities >= 0], entities[entities >= 0], self.labels)

    def split(self, share: float) -> tuple["Observations", "Observations"]:
        """Splits off a random share of the observations; at least one of each entity stays in the first part."""
        order = torch.randperm(len(self), device=self.index.device)
        first = torch.full((len(self.counts),), len(self), device=self.index.device)
        first.scatter_reduce_(0, self.entities[order], torch.arange(len(self), device=self.index.device), "amin")
        free = torch.ones(len(self), dtype=torch.bool, device=self.index.device)
        free[first] = False
        apart = order[free][: round(share * len(self))]
        stays = torch.ones(len(self), dtype=torch.bool, device=self.index.device)
        stays[apart] = False
        return self.at(stays), self.at(~stays)

    def none(self) -> "Observations":
        """No observations, of the same rows."""
        return self.at(self.entities < 0)

    def at(self, chosen: Tensor) -> "Observations":
        """Some of the observations, with the same rows and codes."""
        return Observations(self.X, self.index[chosen], self.entities[chosen], self.labels)


def check_index(rows: ArrayLike | None, length: int, observations: int) -> NDArray[np.int64]:
    """The row of ``X`` of each observation, from the argument ``rows``."""
    if rows is None:
        if length != observations:
            raise ValueError(f"entities must have one id for each of the {length} rows of X; got {observations}")
        return np.arange(length)
    index = np.asarray(rows)
    if index.dtype.kind not in "iu" or index.shape != (observations,):
        found = f"{index.dtype} of shape {index.shape}"
        raise ValueError(f"rows must hold one integer for each of the {observations} entities; got {found}")
    if len(index) and (index.min() < 0 or index.max() >= length):
        raise ValueError(f"rows must be from 0 to {length - 1}, the rows of X; got {index.min()} to {index.max()}")
    return index.astype(np.int64, copy=False)


# Observations whose values are gathered at once.
_PIECE = 65536
