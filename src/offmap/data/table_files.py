"""Reads the cells of a table from a file or standard input; what cannot be read is named by line, with a remedy."""

import codecs
import csv
import io
import json
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow.parquet as pq

from offmap.data.decoding import decoding
from offmap.data.limits import opened, require_cells
from offmap.errors import short_repr

__all__ = [
    "PARQUET_SUFFIXES",
    "SEPARATED_SUFFIXES",
    "STANDARD_INPUT",
    "TABLE_SUFFIXES",
    "filled_rows",
    "misfit",
    "read_cells",
    "refuse_other_forms",
    "refuse_other_separators",
    "separated_options",
]

STANDARD_INPUT = "-"
PARQUET_SUFFIXES = (".parquet", ".pq")
SEPARATED_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
TABLE_SUFFIXES = (*SEPARATED_SUFFIXES, *PARQUET_SUFFIXES, ".jsonl", ".ndjson")
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_OTHER_SEPARATORS = {";": "semicolons", "|": "bars", "\t": "tabs"}
_WIDE = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


def read_cells(path: Path) -> pd.DataFrame:
    """Reads a table with its names of columns as texts; cells of a ``.csv`` or ``.tsv`` file are texts as well.

    No text is converted to a missing value, and quotes have no meaning in a ``.tsv`` file.

    Args:
        path: The file; ``-`` is standard input, which holds CSV or JSON lines.
    """
    with decoding(path, "a table"):
        name = path.name.lower()
        if name.endswith(PARQUET_SUFFIXES):
            about = pq.read_metadata(path)
            require_cells(path.stat().st_size, about.num_rows, about.num_columns)
            return _named(pd.read_parquet(path))
        text = _decoded(_content(path))
        lines = name.endswith((".jsonl", ".ndjson")) or (str(path) == STANDARD_INPUT and text.lstrip()[:1] == "{")
        return _json_lines(text) if lines else _separated(text, tabs=name.endswith((".tsv", ".tsv.gz")))


def _content(path: Path) -> bytes:
    if str(path) == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    with opened(path) as stream:
        return bytes(stream.read())


def refuse_other_forms(content: bytes) -> None:
    """Refuses what begins as an Excel workbook or as UTF-16 does."""
    if content.startswith(_WORKBOOKS):
        raise ValueError("it is an Excel workbook; open it there and save it as CSV UTF-8")
    for mark, name in _WIDE.items():
        if content.startswith(mark):
            raise ValueError(f"it is written in {name}; save it as UTF-8")


def separated_options(tabs: bool) -> dict[str, Any]:
    """How pandas reads cells as texts, whole tables and batches alike.

    Empty lines are kept, since dropping them would shift the rows after them. Without ``index_col``, surplus cells
    would become an index, and every column would shift by one. Plain objects are one block of texts: a typed column of
    its own for each would cost far more in wide tables.
    """
    quoting: Literal[0, 3] = csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL
    kept = {"keep_default_na": False, "dtype": object, "index_col": False, "skip_blank_lines": False}
    return {"sep": "\t" if tabs else ",", "quoting": quoting, **kept}


def _decoded(content: bytes) -> str:
    refuse_other_forms(content)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(
            f"line {line} has the byte 0x{content[error.start]:02x}, which is not UTF-8; save it as UTF-8, as with "
            "iconv -f latin1 -t utf-8"
        ) from None


def _separated(text: str, tabs: bool) -> pd.DataFrame:
    options = separated_options(tabs)
    header = next(csv.reader(io.StringIO(text), delimiter=options["sep"], quoting=options["quoting"]), [])
    refuse_other_separators(header, options)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            frame = pd.read_csv(io.StringIO(text), **options)
        except (pd.errors.ParserWarning, pd.errors.ParserError) as error:
            raise ValueError(misfit(io.StringIO(text), options) or str(error)) from error
    # pandas renames the second of two equal names, which must be reported and not hidden.
    frame.columns = pd.Index(header if len(header) == len(frame.columns) else list(frame.columns))
    # Empty lines at the end are no rows.
    return frame.iloc[: filled_rows(frame)]


def filled_rows(frame: pd.DataFrame) -> int:
    """The number of rows up to the last one that has a cell."""
    cells, end = frame.to_numpy(), len(frame)
    while end and all(pd.isna(cell) or cell == "" for cell in cells[end - 1]):
        end -= 1
    return end


def refuse_other_separators(header: Sequence[str], options: Mapping[str, Any]) -> None:
    """Refuses a header of one cell that holds another separator: every row would be read as one category.

    Args:
        header: The cells of the first line.
        options: What ``separated_options`` says of the table.
    """
    if len(header) == 1 and (other := _other_separator(header)):
        raise ValueError(
            f"line 1 is one cell, {short_repr(header[0])}; the {_separator(options)} separates: it seems to be "
            f"separated by {other}; save it as CSV with commas, or rename the column if it is the only one"
        )


def _other_separator(header: Sequence[str]) -> str:
    return next((name for sign, name in _OTHER_SEPARATORS.items() if sign in "".join(header)), "")


def _separator(options: Mapping[str, Any]) -> str:
    return "tab" if options["sep"] == "\t" else "comma"


def misfit(lines: Iterable[str], options: Mapping[str, Any]) -> str:
    """Which line has more cells than the header, and what to do; "" if none has.

    Args:
        lines: The lines of the table.
        options: What ``separated_options`` says of it.

    Example:
        >>> misfit(["u,v\\n", "1,2,\\n", "3,4,5\\n"], separated_options(tabs=False))
        'line 3 has 3 cells, the header 2; the comma separates: put cells that hold it in quotes'
    """
    reader = csv.reader(lines, delimiter=options["sep"], quoting=options["quoting"])
    header, found = next(reader, []), ""
    other, sign = _other_separator(header), _separator(options)
    remedy = f"it seems to be separated by {other}" if other else "put cells that hold it in quotes"
    for cells in reader:
        if len(cells) > len(header) and (not found or any(cells[len(header) :])):
            count = f"{len(cells)} cells, the header {len(header)}"
            found = f"line {reader.line_num} has {count}; the {sign} separates: {remedy}"
            # A comma at the end of every row is no mistake, so that a cell after it is a better reason.
            if any(cells[len(header) :]):
                break
    return found


def _json_lines(text: str) -> pd.DataFrame:
    # Not splitlines: a text may hold other breaks, such as U+2028, as they are.
    records = [_record(line, number) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    return _named(pd.DataFrame.from_records(records))


def _record(line: str, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise ValueError(f"line {number} is not JSON: {error}; write one object per line") from None
    if not isinstance(record, dict):
        raise ValueError(f"line {number} holds a {type(record).__name__}; write one object per line")
    for name, value in record.items():
        if isinstance(value, list | dict):
            raise ValueError(f"{name!r} in line {number} holds a {type(value).__name__}; give it columns of its own")
    return record


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.set_axis([str(name) for name in frame.columns], axis=1)
