"""Reads the cells of a .csv or .tsv file some rows at a time, exactly as the whole file would be read."""

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pandas as pd

from offmap.data.decoding import decoding
from offmap.data.limits import opened
from offmap.data.table_files import filled_rows, refuse_other_forms, separated_options

__all__ = ["SEPARATED_SUFFIXES", "cells_in_batches", "count_lines", "read_header"]

SEPARATED_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


def read_header(path: Path) -> list[str]:
    """The names of the columns, which the first line of the file holds.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "rows.csv").write_text("id,paid\\n7,3.5\\n")
        ...     read_header(Path(folder) / "rows.csv")
        ['id', 'paid']
    """
    with decoding(path, "a table"):
        with opened(path) as stream:
            refuse_other_forms(stream.read(4))
        with _text(path) as text:
            options = separated_options(_has_tabs(path))
            records = csv.reader(text, delimiter=options["sep"], quoting=options["quoting"])
            header, first = next(records, []), next(records, [])
        if not header:
            raise ValueError("it is empty; its first line must name the columns")
        if len(first) > len(header):
            raise ValueError("its rows have more cells than its header")
        return header


def cells_in_batches(path: Path, rows: int, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
    """Yields the cells as texts, at most ``rows`` rows at a time; the index counts the rows of the file.

    Empty lines at the end of the file are no rows.

    Args:
        path: The file.
        rows: Rows to read at once.
        columns: The columns to yield; all of them if None.
    """
    header, held = read_header(path), None
    with decoding(path, "a table"), _text(path) as text:
        for frame in pd.read_csv(text, chunksize=rows, **separated_options(_has_tabs(path))):
            named = frame.set_axis(header, axis=1)
            whole = named if held is None else pd.concat([held, named])
            end = filled_rows(whole)
            held = whole.iloc[end:] if end < len(whole) else None
            if end:
                yield whole.iloc[:end] if columns is None else whole.iloc[:end][list(columns)]


def count_lines(path: Path) -> int:
    """The number of lines after the header: the number of rows, unless cells hold line breaks."""
    with decoding(path, "a table"), opened(path) as stream:
        return max(sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b"")) - 1, 0)


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
