"""Batches of pairs in Parquet files, for networks that learn from all of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from offmap.batches import Batch
from offmap.collaborative.ids import Ids, check_ids
from offmap.collaborative.observations import Observations
from offmap.collaborative.pair_files import row_numbers
from offmap.data.parquet_rows import ParquetRows, Piece, rows_at
from offmap.data.samplers import ParquetBatches
from offmap.distributed import Processes

# Pairs in memory that tell when to stop, at most.
_MOST_WATCHED = 50_000


@dataclass(frozen=True)
class CodedPairs:
    """Pairs in Parquet files as two columns of integers: the row of ``X``, and the code of the entity.

    Args:
        source: The one column of row numbers.
        entity: Name of the column of entities.
        ids: Ids of all entities, in ascending order.
        rows: Number of rows of ``X``.
    """

    source: ParquetRows
    entity: str
    ids: Ids
    rows: int
    columns: tuple[str, ...] = ("row", "entity")

    @classmethod
    def of(cls, source: ParquetRows, entity: str, rows: int) -> Self:
        """Looks for the entities of all pairs, by one pass."""
        found = (check_ids(source.column(piece, entity), entity) for piece in source.pieces)
        return cls(source, entity, reduce(np.union1d, map(np.unique, found)), rows)

    @property
    def dtype(self) -> np.dtype[np.int64]:
        """Type of the values."""
        return np.dtype(np.int64)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The row groups."""
        return self.source.pieces

    def __len__(self) -> int:
        return len(self.source)

    def read(self, piece: Piece) -> NDArray[np.int64]:
        """The pairs of a row group."""
        index = row_numbers(self.source, piece, self.rows)
        ids = check_ids(self.source.column(piece, self.entity), self.entity)
        return np.column_stack([index, np.searchsorted(self.ids, ids)])

    def watched(self, share: float, held_out: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Numbers of a random share of the pairs that are not held out, at least one, in ascending order."""
        count = min(max(round(share * len(self)), 1), _MOST_WATCHED)
        drawn = rng.choice(len(self), len(held_out) + count, replace=False)
        return np.sort(drawn[~np.isin(drawn, held_out)][:count])

    def observations(self, X: Tensor, numbers: NDArray[np.int64]) -> Observations:
        """The pairs with the given numbers, in memory."""
        index, codes = torch.from_numpy(rows_at(self, numbers)).to(X.device).T
        return Observations(X, index, codes)


@dataclass(frozen=True)
class PairBatches:
    """Batches of pairs: the rows of ``X``, and the codes of the entities.

    Args:
        batches: Batches of ``CodedPairs``.
    """

    batches: ParquetBatches

    @classmethod
    def of(cls, pairs: CodedPairs, size: int, left_out: NDArray[np.int64], device: str) -> Self:
        """All pairs but some."""
        return cls(
            ParquetBatches(pairs, size, left_out=left_out, prepare=lambda rows: torch.tensor(rows, device=device))
        )

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Batch]:
        for (pairs,) in self.batches:
            yield pairs[:, 0], pairs[:, 1]

    def shared(self, processes: Processes) -> Self:
        """The same batches, of which this process reads and gets its share."""
        return replace(self, batches=self.batches.shared(processes))
