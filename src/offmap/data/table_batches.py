"""Reads the cells of a .csv or .tsv file some rows at a time, exactly as the whole file would be read."""

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd

from offmap.data.decoding import decoding
from offmap.data.limits import opened
from offmap.data.table_files import (
    filled_rows,
    misfit,
    refuse_other_forms,
    refuse_other_separators,
    separated_options,
)

__all__ = ["cells_in_batches", "count_lines", "read_header"]


def read_header(path: Path) -> list[str]:
    """The names of the columns, which the first line of the file holds.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "rows.csv").write_text("id,paid\\n7,3.5\\n")
        ...     read_header(Path(folder) / "rows.csv")
        ['id', 'paid']
    """
    return _first_records(path)[0]


def cells_in_batches(path: Path, rows: int, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
    """Yields the cells as texts, at most ``rows`` rows at a time; the index counts the rows of the file.

    Empty lines at the end of the file are no rows.

    Args:
        path: The file.
        rows: Rows to read at once.
        columns: The columns to yield; all of them if None.
    """
    (header, first), held = _first_records(path), None
    width = len(header)
    with decoding(path, "a table"), _text(path) as text:
        for cells in _chunks(path, text, rows, width, max(width, len(first))):
            named = cells.set_axis(header, axis=1)
            whole = named if held is None else pd.concat([held, named])
            end = filled_rows(whole)
            held = whole.iloc[end:] if end < len(whole) else None
            if end:
                yield whole.iloc[:end] if columns is None else whole.iloc[:end][list(columns)]


def count_lines(path: Path) -> int:
    """The number of lines after the header: the number of rows, unless cells hold line breaks."""
    with decoding(path, "a table"), opened(path) as stream:
        return max(sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b"")) - 1, 0)


def _first_records(path: Path) -> tuple[list[str], list[str]]:
    """The header and the first row, which may have one more cell than the header if that is empty."""
    with decoding(path, "a table"):
        with opened(path) as stream:
            refuse_other_forms(stream.read(4))
        with _text(path) as text:
            options = separated_options(_has_tabs(path))
            records = csv.reader(text, delimiter=options["sep"], quoting=options["quoting"])
            header, first = next(records, []), next(records, [])
        if not header:
            raise ValueError("it is empty; its first line must name the columns")
        refuse_other_separators(header, options)
        if len(first) > len(header) + 1 or any(first[len(header) :]):
            raise ValueError(_misfit(path))
        return header, first


def _chunks(path: Path, text: TextIO, rows: int, width: int, cells: int) -> Iterator[pd.DataFrame]:
    """The first ``width`` cells of each row; a further one, after a separator at the end of every row, must be empty.

    By itself, pandas would drop such cells with a warning, and filters of warnings are shared by all threads.
    """
    options = {"header": 0, "names": [*range(cells)], **separated_options(_has_tabs(path))}
    try:
        with pd.read_csv(text, chunksize=rows, **options) as chunks:
            for frame in chunks:
                if not frame.iloc[:, width:].isin(["", np.nan]).all(axis=None):
                    raise ValueError(_misfit(path))
                yield frame.iloc[:, :width]
    except pd.errors.ParserError as error:
        raise ValueError(_misfit(path) or str(error)) from error


def _misfit(path: Path) -> str:
    with _text(path) as text:
        return misfit(text, separated_options(_has_tabs(path)))


def _has_tabs(path: Path) -> bool:
    return path.name.lower().endswith((".tsv", ".tsv.gz"))


@contextmanager
def _text(path: Path) -> Iterator[TextIO]:
    with opened(path) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        try:
            yield text
        except UnicodeDecodeError as error:
            byte = f"0x{error.object[error.start]:02x}"
            raise ValueError(
                f"it has the byte {byte}, which is not UTF-8; save it as UTF-8, as with iconv -f latin1 -t utf-8"
            ) from None
