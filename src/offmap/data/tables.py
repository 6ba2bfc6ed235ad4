"""Readers of tables: ``.csv`` and ``.tsv`` (plain or gzipped) and ``.parquet``."""

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from numpy.typing import NDArray

from offmap.data.decoding import decoding
from offmap.data.limits import opened, require_cells
from offmap.data.rows import Data, as_texts
from offmap.labels import as_numbers

__all__ = ["TABLE_SUFFIXES", "NoSuchColumn", "read_frame", "read_table"]

TABLE_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
_MISSING = ("", "na", "n/a", "nan", "none", "null")


class NoSuchColumn(ValueError):
    """A table has no column of the given name."""


def read_frame(path: Path, strings: Sequence[str] = ()) -> pd.DataFrame:
    """Reads a table. No text is converted to a missing value, and quotes have no meaning in a ``.tsv`` file.

    Args:
        path: The table.
        strings: Columns to read as strings, even if they look like numbers.
    """
    with decoding(path, "a table"):
        if path.name.lower().endswith(".parquet"):
            about = pq.read_metadata(path)
            require_cells(path.stat().st_size, about.num_rows, about.num_columns)
            return pd.read_parquet(path)
        return _read_lines(path, strings)


def read_table(path: Path, text: str | None = None, label: str | None = None) -> Data:
    """Reads rows and labels from a table.

    Args:
        path: The table.
        text: Name of the text column. Without it, all columns except ``label`` are features and must be numeric.
        label: Name of the label column, if there is one.
    """
    if text is not None and text == label:
        raise ValueError(f"text and label must be two different columns; both are {text!r}")
    frame = read_frame(path, strings=[column for column in (text, label) if column is not None])
    if frame.empty:
        raise ValueError(f"{path} must have at least one row")
    for role, column in (("text", text), ("label", label)):
        if column is not None and column not in frame.columns:
            raise NoSuchColumn(f"{role} must be a column of {path}, not {column!r}; it has {_listed(frame.columns)}")
    y = None if label is None else _labels(frame[label], path)
    if text is not None:
        return Data(as_texts(_complete(frame[text], path)), y, name=str(path))
    features = frame.drop(columns=[] if label is None else [label])
    names = tuple(str(column) for column in features.columns)
    return Data(_features(features, path), y, name=str(path), feature_names=names)


def _read_lines(path: Path, strings: Sequence[str]) -> pd.DataFrame:
    frame = _parsed(path, strings)
    filled = np.flatnonzero((frame.notna() & (frame != "")).any(axis=1))
    rows = int(filled[-1]) + 1 if len(filled) else 0
    # Read again without the empty lines at the end, which would turn columns of numbers into strings.
    return frame if rows == len(frame) else _parsed(path, strings, rows)


def _parsed(path: Path, strings: Sequence[str], rows: int | None = None) -> pd.DataFrame:
    """Parses the first ``rows`` rows. Empty lines are kept, since dropping them would shift the rows after them."""
    tabs = path.name.lower().endswith((".tsv", ".tsv.gz"))
    with warnings.catch_warnings(), opened(path) as stream:
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(
                stream,
                sep="\t" if tabs else ",",
                quoting=csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL,
                keep_default_na=False,
                dtype=dict.fromkeys(strings, str),
                # Otherwise surplus cells become an index, and every column shifts by one.
                index_col=False,
                low_memory=False,
                skip_blank_lines=False,
                nrows=rows,
            )
        except pd.errors.ParserWarning as error:
            raise ValueError("its rows have more cells than its header") from error


def _features(frame: pd.DataFrame, path: Path) -> NDArray[np.float64]:
    if not len(frame.columns):
        raise ValueError(f"{path} must have at least one column of numbers besides the label")
    if all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in frame.dtypes):
        # Checked at once: one column at a time takes many times as long where there are thousands.
        numbers = frame.to_numpy(dtype=np.float64)
        if np.isfinite(numbers).all():
            return numbers
    return np.column_stack([_numbers(frame[name], path) for name in frame.columns])


def _numbers(column: "pd.Series[Any]", path: Path) -> NDArray[np.float64]:
    complete = _complete(column, path, _MISSING)
    if not pd.api.types.is_numeric_dtype(complete):
        strange = complete[pd.to_numeric(complete, errors="coerce").isna()]
        example = f", but holds {strange.iloc[0]!r}" if len(strange) else ""
        raise ValueError(
            f"column {column.name!r} of {path} must be numeric{example}; name it as text or label, or remove it"
        )
    numbers = complete.to_numpy(dtype=np.float64)
    if np.isinf(numbers).any():
        raise ValueError(f"column {column.name!r} of {path} is infinite in row {int(np.isinf(numbers).argmax())}")
    return numbers


def _labels(column: "pd.Series[Any]", path: Path) -> NDArray[Any]:
    """Returns numeric labels if all are numbers that lose no digit, else strings."""
    complete = _complete(column, path)
    if pd.api.types.is_numeric_dtype(complete):
        return complete.to_numpy()
    words = complete.astype(str)
    numbers = as_numbers(words.tolist())
    return words.to_numpy(dtype=str) if numbers is None else numbers


def _complete(column: "pd.Series[Any]", path: Path, missing: Sequence[str] = ("",)) -> "pd.Series[Any]":
    """Returns the column, or raises an error if it has missing values: NaN or one of the words ``missing``."""
    absent = column.isna()
    if not pd.api.types.is_numeric_dtype(column):
        absent |= column.astype(str).str.strip().str.lower().isin(list(missing))
    if absent.any():
        raise ValueError(
            f"column {column.name!r} of {path} has {int(absent.sum())} missing values in {len(column)} rows"
        )
    return column


def _listed(columns: "pd.Index[Any]") -> str:
    return ", ".join(repr(column) for column in columns)
