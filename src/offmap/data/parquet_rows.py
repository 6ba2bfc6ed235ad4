"""Rows of numbers in Parquet files, read piece by piece."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from offmap.data.arrow_types import common_type
from offmap.data.table_files import PARQUET_SUFFIXES
from offmap.errors import WorkFailed, reason_of

Rows = NDArray[Any]


class Piece(NamedTuple):
    """A row group of a file: what is read at once.

    Args:
        path: The file.
        group: Number of the row group in the file.
        first: Number of its first row among the rows of all files.
        rows: Number of its rows.
    """

    path: Path
    group: int
    first: int
    rows: int


class Pieces(Protocol):
    """Rows of numbers that are read piece by piece."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The row groups."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""

    def __len__(self) -> int: ...

    def read(self, piece: Piece) -> Rows:
        """The rows of a piece."""


@dataclass(frozen=True)
class ParquetRows:
    """The rows of a Parquet file, or of all Parquet files in a folder in the order of their names.

    Args:
        columns: Names of the columns, all of numbers.
        pieces: The row groups.
        dtype: Type of the values: float32 if all columns have it, else float64.
    """

    columns: tuple[str, ...]
    pieces: tuple[Piece, ...]
    dtype: np.dtype[Any]

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], columns: Sequence[str] | None = None, other: Sequence[str] = ()
    ) -> Self:
        """Reads the description of every file and checks that all hold the same columns of numbers.

        Args:
            path: File or folder.
            columns: Columns to read; by default all of the first file but ``other``.
            other: Columns of any kind that every file must have, for ``column``.

        Raises:
            FileNotFoundError: There is no such file, or no Parquet file in the folder.
            ValueError: A file is damaged, lacks a column or holds one that is not of numbers; the message names both.
        """
        pieces: list[Piece] = []
        names: tuple[str, ...] | None = None if columns is None else tuple(columns)
        kinds: dict[str, tuple[pa.DataType, Path]] = {}
        single = True
        for file in _files(Path(path)):
            described = _described(file)
            schema = described.schema_arrow
            names = names or tuple(name for name in schema.names if name not in other)
            _require_columns(schema, (*names, *other), file)
            single &= _only_single(schema, names, file)
            if described.metadata.num_rows:
                _require_one_kind(schema, other, file, kinds)
            for group in range(described.num_row_groups):
                first = pieces[-1].first + pieces[-1].rows if pieces else 0
                pieces.append(Piece(file, group, first, described.metadata.row_group(group).num_rows))
        filled = tuple(piece for piece in pieces if piece.rows)
        if not filled:
            raise ValueError(f"{path} holds no rows")
        return cls(names or (), filled, np.dtype(np.float32 if single else np.float64))

    def __len__(self) -> int:
        return self.pieces[-1].first + self.pieces[-1].rows

    def read(self, piece: Piece) -> Rows:
        """The rows of a piece.

        Raises:
            WorkFailed: The piece cannot be read, or a value is missing or infinite; the message names the file.
        """
        table = self._table(piece, list(self.columns))
        rows = np.empty((len(table), len(self.columns)), dtype=self.dtype)
        for place, name in enumerate(self.columns):
            rows[:, place] = table.column(name).to_numpy()
        if not np.isfinite(rows).all():
            place, column = (int(found[0]) for found in np.nonzero(~np.isfinite(rows)))
            where = f"row {self.row_in_file(piece, place)}, column {self.columns[column]!r}"
            raise WorkFailed(f"{piece.path} holds a missing or infinite value: {where}; fill or remove it")
        return rows

    def column(self, piece: Piece, name: str) -> Rows:
        """A column of any kind, for the rows of a piece.

        Raises:
            ValueError: A value is missing; the message names the file and the row.
        """
        column = self._table(piece, [name]).column(name)
        # A gap, maybe in another row group, makes pandas write the integers of the whole file as floats.
        if column.null_count or pa.types.is_floating(column.type):
            self._require_complete(piece.path, name)
        return np.asarray(column.to_numpy())

    def _require_complete(self, path: Path, name: str) -> None:
        for piece in self.pieces:
            column = self._table(piece, [name]).column(name) if piece.path == path else None
            if column is not None and column.null_count:
                row = self.row_in_file(piece, column.is_null().to_numpy().argmax())
                raise ValueError(f"{path}: the column {name!r} has a gap in row {row}; fill it, or remove the row")

    def row_in_file(self, piece: Piece, place: int | np.integer) -> int:
        """The number of a row in its file, given its place in a piece."""
        start = next(each.first for each in self.pieces if each.path == piece.path)
        return piece.first - start + int(place)

    def at(self, numbers: NDArray[np.int64]) -> Rows:
        """The rows with the given numbers, which must ascend; a pass over the files that holds no more than these."""
        return rows_at(self, numbers)

    def _table(self, piece: Piece, columns: list[str]) -> pa.Table:
        try:
            return pq.ParquetFile(piece.path).read_row_group(piece.group, columns=columns, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise WorkFailed(f"cannot read {piece.path}: {reason_of(error)}") from error


def rows_at(source: Pieces, numbers: NDArray[np.int64]) -> Rows:
    """The rows with the given numbers, which must ascend, piece by piece."""
    found = [np.empty((0, len(source.columns)), dtype=source.dtype)]
    for piece in source.pieces:
        inside = numbers[np.searchsorted(numbers, piece.first) : np.searchsorted(numbers, piece.first + piece.rows)]
        if len(inside):
            found.append(source.read(piece)[inside - piece.first])
    return np.concatenate(found)


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {path}")
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in PARQUET_SUFFIXES)
    if not files:
        raise FileNotFoundError(f"there is no file in {path} that ends in {' or '.join(PARQUET_SUFFIXES)}")
    return files


def _described(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        if file.suffix.lower() not in PARQUET_SUFFIXES:
            remedy = "give it without --stream, as a table in memory, or write it as Parquet"
            raise ValueError(
                f"{file} is no Parquet file, the one format that is read piece by piece (--stream); {remedy}"
            ) from error
        raise ValueError(f"{file} is damaged or no Parquet file: {reason_of(error)}") from error


def _require_columns(schema: pa.Schema, names: tuple[str, ...], file: Path) -> None:
    for name in names:
        if name not in schema.names:
            raise ValueError(f"{file} lacks the column {name!r}")


def _require_one_kind(
    schema: pa.Schema, names: Sequence[str], file: Path, seen: dict[str, tuple[pa.DataType, Path]]
) -> None:
    """Refuses integers beside texts, which name different things; ``seen`` gets the type that is the first."""
    for name in names:
        kind = schema.field(name).type
        first, path = seen.setdefault(name, (kind, file))
        if common_type([kind, first]) == pa.string() and pa.types.is_integer(kind) != pa.types.is_integer(first):
            raise ValueError(
                f"{file}: the column {name!r} holds {kind}, but {first} in {path}; write it with one type in all files"
            )


def _only_single(schema: pa.Schema, names: tuple[str, ...], file: Path) -> bool:
    """Whether all columns are of single precision; raises a ``ValueError`` if one holds no numbers."""
    for name in names:
        kind = schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise ValueError(
                f"{file}: the column {name!r} holds {kind}; only columns of numbers are read piece by piece: name "
                "them, or encode it before"
            )
    return all(schema.field(name).type == pa.float32() for name in names)
