"""Reads features, labels or texts from a table, by the roles of its columns."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from offmap.data.decoding import decoding
from offmap.data.roles import NoSuchColumn, Roles
from offmap.data.rows import Data, as_texts
from offmap.data.table.cells import as_numbers
from offmap.data.table.problems import raise_problems, repeated_columns
from offmap.data.table_files import TABLE_SUFFIXES, read_cells
from offmap.labels import as_numbers as numeric_labels

__all__ = ["TABLE_SUFFIXES", "NoRows", "NoSuchColumn", "read_frame", "read_table"]

_INTEGER = r"[+-]?(?:0|[1-9]\d{0,17})"
_NUMBER = r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_INTEGERS, _NUMBERS = (re.compile(rf"{cell}(?:\n{cell})*+", re.ASCII) for cell in (_INTEGER, _NUMBER))


class NoRows(ValueError):
    """A table has a header and no rows.

    Args:
        message: What is wrong.
        kept: Names of the columns that would be kept beside the scores.
    """

    def __init__(self, message: str, kept: Sequence[str]) -> None:
        super().__init__(message)
        self.kept = kept


def read_frame(path: Path, strings: Sequence[str] = ()) -> pd.DataFrame:
    """Reads a table as pandas does. No text is converted to a missing value; a ``.tsv`` file has no quotes.

    Args:
        path: The table.
        strings: Columns to read as strings, even if they look like numbers.
    """
    with decoding(path, "a table"):
        frame = read_cells(path)
        return _all_typed(frame, strings)


def read_table(path: Path, roles: Roles | None = None, optional: Sequence[str] = ()) -> Data:
    """Reads rows and labels from a table.

    Args:
        path: The table; ``-`` is standard input.
        roles: What its columns are for; by default all of them are features.
        optional: Roles whose columns the table may lack, such as "label".
    """
    roles = roles or Roles()
    where = "standard input" if str(path) == "-" else str(path)
    frame = read_cells(path)
    raise_problems(repeated_columns(frame.columns), where)
    roles.require(frame, where, optional)
    kept = roles.kept_names(frame.columns)
    if frame.empty:
        raise NoRows(f"{where} must have at least one row", kept)
    target = roles.target if roles.target in frame.columns else None
    y = None if target is None else _labels(frame[target], where)
    identity = frame[kept] if kept else None
    if roles.text is not None:
        texts = as_texts(_complete(frame[roles.text], where))
        shown = frame[kept].assign(text=texts) if roles.text not in kept else frame[kept]
        return Data(texts, y, name=where, identity=shown)
    features = frame[roles.feature_names(frame.columns)]
    if not len(features.columns):
        raise ValueError(f"{where} must have at least one column besides the label")
    return _as_data(features, y, where, identity, dict(roles.kinds))


def _as_data(
    features: pd.DataFrame, y: NDArray[Any] | None, where: str, identity: pd.DataFrame | None, kinds: dict[str, str]
) -> Data:
    """Features as an array of doubles if all are complete numbers, and as a frame in any case."""
    frame = _all_typed(features, kinds)
    numeric = all(pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes)
    X = frame.to_numpy(dtype=np.float64, na_value=np.nan) if numeric else frame.to_numpy(dtype=object)
    return Data(X, y, name=where, feature_names=tuple(frame.columns), frame=frame, identity=identity)


def _all_typed(frame: pd.DataFrame, as_they_are: Collection[str]) -> pd.DataFrame:
    """The table with its columns typed, but for those named."""
    typed = {name: column if name in as_they_are else _typed(column) for name, column in frame.items()}
    return pd.DataFrame(typed, index=frame.index)


def _typed(column: Any) -> Any:
    """The column as numbers if every cell is one; codes with a leading zero stay texts, and so do gaps in texts."""
    if column.dtype != object and not pd.api.types.is_string_dtype(column):
        return column
    if (numbers := _plain_numbers(column.tolist())) is not None:
        return numbers
    truth = column.astype(str).str.lower()
    if truth.isin(["true", "false"]).all():
        return truth == "true"
    read = as_numbers(column)
    if read.unreadable.any() or read.missing.all() or _has_codes(column.astype(str)):
        return column
    whole = not read.missing.any() and np.array_equal(read.values, np.round(read.values)) and _within_integers(column)
    return pd.Series(column.astype(str).astype(np.int64) if whole else read.values, index=column.index)


def _plain_numbers(cells: list[Any]) -> NDArray[Any] | None:
    """The common case, numbers without gaps, in one pass over the joined cells; None for all other columns."""
    try:
        joined = "\n".join(cells)
    except TypeError:
        return None
    if _INTEGERS.fullmatch(joined):
        return np.array(cells, dtype=np.int64)
    return np.array(cells, dtype=np.float64) if _NUMBERS.fullmatch(joined) else None


def _within_integers(column: Any) -> bool:
    return bool(column.astype(str).str.fullmatch(r"\s*[+-]?\d{1,18}\s*").all())


def _has_codes(words: Any) -> bool:
    return bool(words.str.fullmatch(r"\s*[+-]?0\d+\s*").any())


def _labels(column: Any, where: str) -> NDArray[Any]:
    """Returns numeric labels if all are numbers, else strings. With a leading zero, as in codes, they stay strings."""
    complete = _complete(column, where)
    if pd.api.types.is_numeric_dtype(complete):
        return complete.to_numpy()
    words = complete.astype(str)
    numbers = numeric_labels(words.tolist())
    return words.to_numpy(dtype=str) if numbers is None else numbers


def _complete(column: Any, where: str) -> Any:
    """Returns the column, or raises an error if it has missing values: NaN or empty texts."""
    absent = column.isna()
    if not pd.api.types.is_numeric_dtype(column):
        absent |= column.astype(str).str.strip() == ""
    if absent.any():
        rows = f"row {column.index[int(absent.to_numpy().argmax())]} is the first; fill the gaps or remove these rows"
        count = f"{int(absent.sum())} missing values in {len(column)} rows"
        raise ValueError(f"column {column.name!r} of {where} has {count} ({rows})")
    return column
