"""Limits that keep a small file from growing beyond memory while it is read."""

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["TooLarge", "opened", "require_cells", "require_ratio"]

# Data compress 3 to 50 times, repetitive tables up to 200 times; a file made to fill the memory, 1,000 times.
_LARGEST_RATIO = 200
# Below this size no ratio matters.
_HARMLESS = 1 << 26
_HARMLESS_CELLS = 1 << 26
_CELLS_PER_BYTE = 200


class TooLarge(ValueError):
    """A file would grow far beyond its size while it is read."""


def require_ratio(compressed: int, size: int) -> None:
    """Refuses ``size`` bytes that come from so few compressed ones that the file looks made to fill the memory.

    Example:
        >>> require_ratio(compressed=1_000_000, size=100_000_000)
        >>> require_ratio(compressed=1_000_000, size=1_000_000_000)
        Traceback (most recent call last):
        offmap.data.limits.TooLarge: it grows more than 200 times when it is decompressed, ...
    """
    if size > max(_HARMLESS, _LARGEST_RATIO * compressed):
        raise TooLarge(
            f"it grows more than {_LARGEST_RATIO} times when it is decompressed, beyond {_HARMLESS >> 20} MiB; "
            "if you trust it, decompress it first"
        )


def require_cells(size: int, rows: int, columns: int) -> None:
    """Refuses a table that says of itself to hold far more cells than its ``size`` in bytes explains."""
    if rows * columns > max(_HARMLESS_CELLS, _CELLS_PER_BYTE * size):
        raise TooLarge(f"its {size:,} bytes claim to hold {rows:,} rows of {columns:,} columns")


class _Counted(io.RawIOBase):
    """A decompressed stream that stops as soon as it has grown too much."""

    def __init__(self, stream: Any, compressed: int) -> None:
        self.stream, self.compressed, self.size = stream, compressed, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self.stream.read(len(buffer))
        self.size += len(part)
        require_ratio(self.compressed, self.size)
        buffer[: len(part)] = part
        return len(part)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Yields a file for reading, decompressed if its name ends in ``.gz``, with a limit to how much it grows."""
    if not path.name.lower().endswith(".gz"):
        with path.open("rb") as stream:
            yield stream
        return
    with gzip.open(path, "rb") as whole, io.BufferedReader(_Counted(whole, path.stat().st_size), 1 << 20) as counted:
        yield counted
