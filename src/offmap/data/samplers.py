"""Batches of rows that do not fit in memory, in a random order."""

import math
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from offmap.batches import Batch
from offmap.data.parquet_rows import Piece, Pieces, Rows
from offmap.distributed import ALONE, Processes
from offmap.random_state import torch_seed


def as_tensor(rows: NDArray[Any]) -> Tensor:
    """The rows in single precision."""
    return torch.from_numpy(rows.astype(np.float32))


@dataclass(frozen=True)
class ParquetBatches:
    """Batches from Parquet files, read on a thread ahead of training and shuffled in a buffer.

    Row groups come in a new random order for each epoch. Rows are drawn from a buffer that holds many of them, which is
    close to a random order if rows that are stored together are fewer than the buffer. Memory holds the buffer and a
    few row groups, whatever the number of rows.

    Args:
        source: The rows.
        size: Largest number of rows per batch, over all processes.
        buffer: Rows to draw from. Raise it if the files are sorted and the order matters.
        left_out: Numbers of rows that never come, in ascending order.
        prepare: Turns the rows of a batch into a tensor.
        ahead: Row groups to read ahead.
        processes: The processes that share the row groups; each reads its own.

    Example:
        >>> import pandas as pd, tempfile
        >>> from pathlib import Path
        >>> from offmap.data.parquet_rows import ParquetRows
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pd.DataFrame({"x": np.arange(10.0)}).to_parquet(Path(folder) / "rows.parquet")
        ...     [len(rows) for (rows,) in ParquetBatches(ParquetRows.open(folder), size=4)]
        [3, 3, 4]
    """

    source: Pieces
    size: int
    buffer: int = 100_000
    left_out: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    prepare: Callable[[NDArray[Any]], Tensor] = as_tensor
    ahead: int = 2
    processes: Processes = ALONE

    def __len__(self) -> int:
        return math.ceil((len(self.source) - len(self.left_out)) / self.size)

    def __iter__(self) -> Iterator[Batch]:
        order = torch.randperm(len(self.source.pieces)).tolist()
        rng = np.random.default_rng((torch_seed(), self.processes.rank))
        own = self._own([self.source.pieces[place] for place in order])
        read = self._read_ahead(own)
        pool = np.empty((0, len(self.source.columns)), dtype=self.source.dtype)
        for size in self._sizes(own):
            if len(pool) < max(self.buffer // 2, size):
                pool = self._refilled(pool, read, rng)
            yield (self.prepare(pool[:size]),)
            pool = pool[size:]

    def shared(self, processes: Processes) -> Self:
        """The same batches, of which this process reads and gets its share."""
        return replace(self, processes=processes)

    def then(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The same batches, each changed by a function."""
        prepare = self.prepare
        return replace(self, prepare=lambda rows: change(prepare(rows)))

    def _own(self, pieces: list[Piece]) -> list[Piece]:
        """The pieces of this process: each goes to the process that has the fewest rows so far."""
        shares: list[list[Piece]] = [[] for _ in range(self.processes.count)]
        rows = [0] * self.processes.count
        for piece in sorted(pieces, key=self._kept, reverse=True) if self.processes.count > 1 else pieces:
            least = rows.index(min(rows))
            shares[least].append(piece)
            rows[least] += self._kept(piece)
        if min(rows) < len(self):
            raise ValueError(
                f"{len(pieces)} row groups are too few for {len(self)} batches on {self.processes.count} processes; "
                "write smaller row groups, raise batch_size, or start fewer processes"
            )
        # Dealt by size, read in the random order.
        return sorted(shares[self.processes.rank], key=pieces.index)

    def _sizes(self, own: list[Piece]) -> list[int]:
        """Rows of this process in each batch: all processes make as many steps, whatever their rows."""
        rows, steps = sum(map(self._kept, own)), len(self)
        return [(rows * (step + 1)) // steps - (rows * step) // steps for step in range(steps)]

    def _refilled(self, pool: Rows, read: Iterator[Rows], rng: np.random.Generator) -> Rows:
        parts = [pool]
        while sum(map(len, parts)) < max(self.buffer, self.size) and (part := next(read, None)) is not None:
            parts.append(part)
        if len(parts) == 1:
            return pool
        joined = np.concatenate(parts)
        return joined[rng.permutation(len(joined))]

    def _read_ahead(self, pieces: list[Piece]) -> Iterator[Rows]:
        """The rows of the pieces, of which the next ones are being read."""
        waiting = deque(pieces)
        with ThreadPoolExecutor(1) as thread:
            reading: deque[Future[Rows]] = deque()
            while waiting or reading:
                while waiting and len(reading) < self.ahead:
                    reading.append(thread.submit(self._read, waiting.popleft()))
                yield reading.popleft().result()

    def _read(self, piece: Piece) -> Rows:
        rows = self.source.read(piece)
        return np.delete(rows, self._left_out(piece) - piece.first, axis=0)

    def _kept(self, piece: Piece) -> int:
        return piece.rows - len(self._left_out(piece))

    def _left_out(self, piece: Piece) -> NDArray[np.int64]:
        first, last = np.searchsorted(self.left_out, (piece.first, piece.first + piece.rows))
        return self.left_out[first:last]
