"""Reads features, labels or texts from a table, by the roles of its columns."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.extensions import ExtensionDtype

from offmap.data.cell_types import CellTypes, all_typed
from offmap.data.decoding import decoding
from offmap.data.roles import NoSuchColumn, Roles
from offmap.data.rows import Data, as_texts
from offmap.data.table.problems import raise_problems, repeated_columns
from offmap.data.table_files import TABLE_SUFFIXES, read_cells
from offmap.labels import as_numbers as numeric_labels

__all__ = [
    "TABLE_SUFFIXES",
    "NoRows",
    "NoSuchColumn",
    "read_frame",
    "read_table",
    "refuse_bytes",
    "require_integers",
    "rows_of",
]


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
        return all_typed(frame, strings)


def read_table(path: Path, roles: Roles | None = None, optional: Sequence[str] = ()) -> Data:
    """Reads rows and labels from a table.

    Args:
        path: The table; ``-`` is standard input.
        roles: What its columns are for; by default all of them are features.
        optional: Roles whose columns the table may lack, such as "label".
    """
    return rows_of(read_cells(path), roles or Roles(), "standard input" if str(path) == "-" else str(path), optional)


def rows_of(
    frame: pd.DataFrame,
    roles: Roles,
    where: str,
    optional: Sequence[str] = (),
    types: Mapping[str, CellTypes] = MappingProxyType({}),
) -> Data:
    """Rows and labels of a table that was read.

    Args:
        frame: The cells.
        roles: What the columns are for.
        where: What the table is called in messages.
        optional: Roles whose columns the table may lack.
        types: What is known of the cells of columns of which ``frame`` holds a part; by default they are looked at.
    """
    raise_problems(repeated_columns(frame.columns), where)
    roles.require(frame, where, optional)
    kept = roles.kept_names(frame.columns)
    if frame.empty:
        raise NoRows(f"{where} must have at least one row", kept)
    target = roles.target if roles.target in frame.columns else None
    features = roles.feature_names(frame.columns) if roles.text is None else [roles.text]
    refuse_bytes(frame, where, features if target is None else [*features, target])
    labels = _labels if roles.entity is None else _ids
    y = None if target is None else labels(frame[target], where, target in dict(roles.kinds))
    identity = frame[kept].infer_objects() if kept else None
    if roles.text is not None:
        texts = as_texts(_complete(frame[roles.text], where))
        shown = frame[kept] if roles.text in kept else frame[kept].assign(**{roles.text_name(kept): texts})
        return Data(texts, y, name=where, identity=shown)
    cells = frame if features == list(frame.columns) else frame[features]
    if not len(cells.columns):
        raise ValueError(f"{where} must have at least one column besides the label")
    return _as_data(all_typed(cells, dict(roles.kinds), types), y, where, identity)


def refuse_bytes(frame: pd.DataFrame, where: str, names: Sequence[str]) -> None:
    """Raises a ``ValueError`` that names the first column of bytes, as binary columns of Parquet are read.

    Example:
        >>> refuse_bytes(pd.DataFrame({"paid": [3.5], "scan": [bytes(9)]}), "rows.parquet", ["paid", "scan"])
        Traceback (most recent call last):
        ValueError: column 'scan' of rows.parquet holds bytes; leave it out with --drop, or write it as text or numbers
    """
    for name in names:
        first = frame[name].first_valid_index() if frame[name].dtype == object else None
        if first is not None and isinstance(frame[name][first], bytes):
            remedy = "leave it out with --drop, or write it as text or numbers"
            raise ValueError(f"column {name!r} of {where} holds bytes; {remedy}")


def _as_data(frame: pd.DataFrame, y: NDArray[Any] | None, where: str, identity: pd.DataFrame | None) -> Data:
    """Features as an array of doubles if all are complete numbers, and as a frame in any case."""
    numeric = all(pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes)
    return Data(
        _as_doubles(frame) if numeric else frame.to_numpy(dtype=object),
        y,
        name=where,
        feature_names=tuple(frame.columns),
        frame=frame,
        identity=identity,
    )


def _as_doubles(frame: pd.DataFrame) -> NDArray[np.float64]:
    """Only types of pandas itself have a missing value that is not NaN; to look for it costs a copy."""
    if any(isinstance(kind, ExtensionDtype) for kind in frame.dtypes):
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return frame.to_numpy(dtype=np.float64)


def require_integers(column: Any, where: str) -> None:
    """Raises a ``ValueError`` that names the first cell of a column of ids that is no integer.

    Example:
        >>> require_integers(pd.Series(["7", "x"], name="user"), "rows.csv")
        Traceback (most recent call last):
        ValueError: column 'user' of rows.csv names entities by integers, but row 1 holds 'x'; write an integer ...
    """
    for row, word in column.astype(str).items():
        number = numeric_labels([word])
        if number is None or number.dtype.kind != "i":
            remedy = "write an integer there, without a decimal point or leading zeros, or leave the row out"
            raise ValueError(
                f"column {column.name!r} of {where} names entities by integers, but row {row} holds {word!r}; {remedy}"
            )


def _ids(column: Any, where: str, as_they_are: bool) -> NDArray[Any]:
    """Returns integers if all ids are, else strings; numbers with a decimal point would match no id."""
    if pd.api.types.is_float_dtype(column):
        kind = _complete(column, where).dtype
        remedy = "write whole numbers without a decimal point, as with .astype(int), or texts"
        raise ValueError(
            f"column {column.name!r} of {where} must hold integers or texts, since it names entities; it holds {kind}; "
            f"{remedy}"
        )
    found = _labels(column, where, as_they_are)
    if found.dtype.kind == "f":
        require_integers(column, where)
    return found


def _labels(column: Any, where: str, as_they_are: bool) -> NDArray[Any]:
    """Returns numeric labels if all are numbers, else strings. With a leading zero, as in codes, they stay strings."""
    complete = _complete(column, where)
    if as_they_are:
        return np.asarray(complete.astype(str), dtype=str)
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
