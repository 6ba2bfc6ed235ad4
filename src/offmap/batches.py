"""Batches of rows, which several processes may share."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol, Self, runtime_checkable

import torch
from torch import Tensor

from offmap.distributed import ALONE, Processes

Batch = tuple[Tensor, ...]


class Sampler(Protocol):
    """An iterable of batches with a length; each iteration is one epoch."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Batch]: ...


@runtime_checkable
class SharedSampler(Sampler, Protocol):
    """A sampler whose batches several processes can share; any other gives each process the whole batch."""

    def shared(self, processes: Processes) -> "SharedSampler":
        """The same batches, of which this process gets its slice."""
        ...


@dataclass(frozen=True)
class Batches:
    """Batches of tensors in memory, in a new random order for each epoch.

    The rows are distributed evenly, so that no batch has a single row, for which batch normalisation is undefined: with
    ``size=2`` and an odd number of rows, one batch has three. ``size=1`` is respected.

    Args:
        tensors: Tensors of equal length; a batch holds the same rows of each.
        size: Largest number of rows per batch.
        processes: The processes that share each batch; every one draws the same order and takes its slice.

    Example:
        >>> [len(rows) for (rows,) in Batches((torch.arange(7),), size=3)]
        [3, 2, 2]
    """

    tensors: tuple[Tensor, ...]
    size: int
    processes: Processes = ALONE

    def __len__(self) -> int:
        rows = len(self.tensors[0])
        return rows if self.size == 1 else min(math.ceil(rows / self.size), max(rows // 2, 1))

    def __iter__(self) -> Iterator[Batch]:
        order = torch.randperm(len(self.tensors[0]))
        for batch in order.tensor_split(len(self)):
            rows = batch.tensor_split(self.processes.count)[self.processes.rank]
            yield tuple(tensor[rows] for tensor in self.tensors)

    def shared(self, processes: Processes) -> Self:
        """The same batches, of which this process gets its slice.

        Raises:
            ValueError: A batch has fewer rows than there are processes.
        """
        smallest = len(self.tensors[0]) // len(self)
        if smallest < processes.count:
            raise ValueError(
                f"batches of {smallest} rows cannot be shared by {processes.count} processes; raise batch_size, or "
                "start fewer processes"
            )
        return replace(self, processes=processes)
