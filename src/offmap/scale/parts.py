"""Parts: consecutive rows of one file that are scored, written and resumed together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from offmap.data.decoding import decoding
from offmap.data.table_batches import cells_in_batches, count_lines, read_header
from offmap.scale.sources import Source, SourceFile

# Rows of a part. It is what is scored again after a kill, and what a worker takes at once.
PART_ROWS = 1 << 18
# Rows that are held as texts at once.
BATCH_ROWS = 1 << 16
# Rows that a worker holds as numbers at once: enough to hide the cost of a call, and so few where columns are many that
# they take 32 MB at most.
_MOST_ROWS, _LEAST_ROWS, _MOST_CELLS = 1 << 17, 1 << 10, 1 << 22
# Bytes of each column that are read at once; without it, a whole row group would be held.
_BUFFER = 1 << 16


class Position(NamedTuple):
    """Where a part begins: its file's place in the source, the row in that file, and the row in the source."""

    file: int = 0
    row: int = 0
    before: int = 0


BEGINNING = Position()


@dataclass(frozen=True, kw_only=True)
class Part:
    """Consecutive rows of one file.

    Args:
        file: The file.
        at: Where the part begins.
        rows: How many rows it has.
        ends: Whether it ends its file.
        groups: The row groups of a Parquet file that hold it.
        skipped: Rows of the first of these groups that lie before it.
        cells: The rows themselves, where a file has to be read from its beginning.
    """

    file: SourceFile
    at: Position
    rows: int
    ends: bool
    groups: tuple[int, ...] = ()
    skipped: int = 0
    cells: pd.DataFrame | None = None

    def batches(self, columns: Sequence[str], rows: int | None = None) -> Iterator[pa.Table]:
        """Yields tables of the named columns with at most ``rows`` rows, by default as many as suit their number."""
        inside = [name for name in columns if name not in self.file.values]
        size = rows or batch_rows(len(columns))
        whole = self._cells(inside) if self.cells is not None else self._groups(inside, size)
        for table in whole:
            for name, value in self.file.values.items():
                if name in columns:
                    table = table.append_column(name, pa.repeat(value, len(table)))
            yield table.select(list(columns))

    def _cells(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        assert self.cells is not None
        yield pa.Table.from_pandas(self.cells[list(columns)], preserve_index=False).replace_schema_metadata()

    def _groups(self, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
        with decoding(self.file.path, "a Parquet table"), _parquet(self.file) as opened:
            found = opened.iter_batches(rows, row_groups=list(self.groups), columns=list(columns), use_threads=False)
            first = -self.skipped
            for batch in found:
                inside = batch.slice(max(-first, 0), min(len(batch), self.rows - first) - max(-first, 0))
                first += len(batch)
                if len(inside):
                    yield pa.Table.from_batches([inside])
                if first >= self.rows:
                    return


def batch_rows(columns: int) -> int:
    """How many rows of so many columns a worker takes at once: a power of two, which fills the chunks of models.

    Example:
        >>> batch_rows(20), batch_rows(1000)
        (131072, 4096)
    """
    fitting = _MOST_CELLS // max(columns, 1)
    return 1 << min(max(fitting, _LEAST_ROWS), _MOST_ROWS).bit_length() - 1


def columns_of(source: Source, file: SourceFile) -> pa.Schema:
    """Name and type of each column of a file, those that its folders state included."""
    if source.form == "parquet":
        fields = _parquet_fields(file)
    else:
        fields = [pa.field(name, pa.string()) for name in read_header(file.path)]
    own = [field for field in fields if field.name not in file.values]
    return pa.schema([*own, *(pa.field(name, value.type) for name, value in file.values.items())])


def count_rows(source: Source) -> int:
    """The number of rows; of files without such a number, the number of their lines."""
    if source.form == "separated":
        return sum(count_lines(file.path) for file in source.files)
    total = 0
    for file in source.files:
        with decoding(file.path, "a Parquet table"), _parquet(file) as opened:
            total += opened.metadata.num_rows
    return total


def parts_of(
    source: Source, start: Position = BEGINNING, rows: int = PART_ROWS, *, split_groups: bool = False
) -> Iterator[Part]:
    """Yields the parts of a source from ``start`` on, in the order of their rows.

    Args:
        source: The files.
        start: Where to begin; the beginning of a part, or of a file.
        rows: Rows of a part, at most. A row group of a Parquet file that has more is one part, since it can only be
            read from its beginning.
        split_groups: Whether to split such row groups all the same, since reading costs little beside scoring.
    """
    before = start.before
    for place in range(start.file, len(source.files)):
        skipped = start.row if place == start.file else 0
        file, begin = source.files[place], Position(place, skipped, before)
        parquet = source.form == "parquet"
        for part in _cut_groups(file, begin, rows, split_groups) if parquet else _cut_cells(file, begin, rows):
            yield part
            before += part.rows


def _cut_groups(file: SourceFile, start: Position, rows: int, split: bool) -> Iterator[Part]:
    """Row groups in runs of at most ``rows`` rows."""
    with decoding(file.path, "a Parquet table"), _parquet(file) as opened:
        sizes = [opened.metadata.row_group(group).num_rows for group in range(opened.metadata.num_row_groups)]
    first, total = 0, sum(sizes)
    for begin, end in pairwise([0, *_runs(sizes, rows)]):
        count = sum(sizes[begin:end])
        for skipped in range(0, count, rows if split else max(count, 1)):
            row, own = first + skipped, min(count - skipped, rows) if split else count
            if row >= start.row:
                at = Position(start.file, row, start.before + row - start.row)
                groups = tuple(range(begin, end))
                yield Part(file=file, at=at, rows=own, ends=row + own == total, groups=groups, skipped=skipped)
        first += count


def _runs(sizes: Sequence[int], rows: int) -> list[int]:
    """Where to cut so that each run adds up to at most ``rows``, or is one size."""
    ends, held = [], 0
    for place, size in enumerate(sizes):
        if held and held + size > rows:
            ends.append(place)
            held = 0
        held += size
    return [*ends, len(sizes)] if sizes else []


def _cut_cells(file: SourceFile, start: Position, rows: int) -> Iterator[Part]:
    """Rows of a text file, of which each part but the last is full; the rows before ``start`` are read and dropped."""
    waiting: Part | None = None
    for cells in cells_in_batches(file.path, min(rows, BATCH_ROWS)):
        first = int(cells.index[0])
        if first >= start.row:
            if waiting is not None:
                yield waiting
            at = Position(start.file, first, start.before + first - start.row)
            waiting = Part(file=file, at=at, rows=len(cells), ends=False, cells=cells)
    if waiting is not None:
        yield Part(**{**vars(waiting), "ends": True})


def _parquet(file: SourceFile) -> pq.ParquetFile:
    return pq.ParquetFile(file.path, buffer_size=_BUFFER, pre_buffer=False)


def _parquet_fields(file: SourceFile) -> list[pa.Field]:
    """The columns; what pandas wrote as the index of a frame is none."""
    with decoding(file.path, "a Parquet table"), _parquet(file) as opened:
        schema = opened.schema_arrow
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        return [field for field in schema.remove_metadata() if field.name not in index]
