"""Rows from JSON as the model reads them; what does not fit is named by row and column."""

import sys
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from offmap.data import TableEncoder
from offmap.data.module_encoder import ModuleEncoder
from offmap.data.rows import as_texts
from offmap.errors import short_repr
from offmap.estimator import encoder_of
from offmap.numeric_rows import first_not_finite
from offmap.service.problems import Problem
from offmap.workflow import Estimator


def reads_texts(model: Estimator) -> bool:
    """Whether a model was fitted on texts: its encoder reads no features, but it has one."""
    encoder = encoder_of(model)
    numeric = isinstance(encoder, TableEncoder | ModuleEncoder) or hasattr(encoder, "n_features_in_")
    return encoder is not None and not numeric


def rows_from_json(model: Estimator, content: Mapping[str, Any], most: int) -> Any:
    """The rows of a request: ``{"texts": […]}``, or ``{"rows": […]}`` with a list or an object per row.

    Args:
        model: The model that reads them.
        content: The body.
        most: Most rows.
    """
    name, rows = _sent(content, most)
    if name == "texts":
        return texts(model, rows)
    if reads_texts(model):
        raise Problem(422, "rows holds numbers, but this model was fitted on texts; send texts")
    if isinstance(rows[0], dict):
        return _records(model, rows)
    if isinstance(encoder := encoder_of(model), TableEncoder):
        return cells(encoder, rows)
    return numbers(model, rows)


def first_rows(content: Mapping[str, Any], most: int) -> Any:
    """The rows of a request for a world that has no model yet: objects give its columns their names.

    Args:
        content: The body.
        most: Most rows.
    """
    name, rows = _sent(content, most)
    if name == "texts":
        return rows
    if not isinstance(rows[0], dict):
        return _finite(_floats(rows))
    names = list(rows[0])
    _require_columns(rows, names, "row 0 lacks")
    cells = pd.DataFrame.from_records(rows, columns=names).to_numpy(dtype=object)
    return pd.DataFrame(_finite(_floats(cells, names), names), columns=names)


def _sent(content: Mapping[str, Any], most: int) -> tuple[str, list[Any]]:
    given = [name for name in ("rows", "texts") if name in content]
    if len(given) != 1:
        raise Problem(422, "the body must have either rows or texts")
    rows = content[given[0]]
    if not isinstance(rows, list) or not rows:
        raise Problem(422, f"{given[0]} must be a list with at least one entry")
    require_few(len(rows), most)
    return given[0], rows


def require_few(count: int, most: int) -> None:
    """Refuses more rows than a request may have."""
    if count > most:
        raise Problem(413, f"the request has {count:,} rows, more than {most:,}; send them in several requests")


def texts(model: Estimator, given: Sequence[Any]) -> NDArray[Any]:
    """Texts for a model that reads them."""
    if not reads_texts(model):
        raise Problem(422, "texts holds texts, but this model was fitted on numbers; send rows")
    for place, text in enumerate(given):
        if not isinstance(text, str):
            raise Problem(422, f"row {place} of texts is {short_repr(text)}, not a text")
    return as_texts(given)


def numbers(model: Estimator, given: Any, names: Sequence[str] | None = None) -> NDArray[Any]:
    """Numbers as an array of the shape that the model was fitted on; images may come as flat rows.

    Args:
        model: The model.
        given: An array, or lists of numbers.
        names: Names of the columns, for messages.
    """
    X = given if isinstance(given, np.ndarray) and given.dtype.kind in "biuf" else _floats(given, names)
    shape = tuple(model.input_shape_)
    if not hasattr(model, "encoder_") and X.shape[1:] != shape and X.shape[1:] != shape[:2]:
        if X.ndim != 2 or X.shape[1] != prod(shape):
            raise Problem(
                422, f"rows have the shape {_sized(X.shape[1:])}, but the model was fitted on {_sized(shape)}"
            )
        X = X.reshape(len(X), *shape)
    return _finite(X, names)


def named(model: Estimator, rows: Any) -> Any:
    """The rows with the names of their columns, if the model knows them."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or not isinstance(rows, np.ndarray) or rows.ndim != 2:
        return rows
    return pd.DataFrame(rows, columns=names)


def _floats(given: Any, names: Sequence[str] | None = None) -> NDArray[np.float64]:
    try:
        X = np.array(given)
        # Python would read "1_000" as a number.
        texts = X.dtype == object and any(isinstance(value, str) for value in X.flat)
        if X.dtype.kind not in "biufO" or X.ndim < 2 or texts:
            raise ValueError
        return X.astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        raise Problem(422, _unreadable(given, names)) from None


def _finite(X: NDArray[Any], names: Sequence[str] | None = None) -> NDArray[Any]:
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        raise Problem(422, _not_finite(X, names))
    return X


def _records(model: Estimator, rows: list[dict[str, Any]]) -> Any:
    """Rows that name their columns."""
    encoder = encoder_of(model)
    known = getattr(encoder if isinstance(encoder, TableEncoder) else model, "feature_names_in_", None)
    if known is None:
        raise Problem(422, "rows are objects, but the model knows no names of columns; send a list of numbers per row")
    names = [str(name) for name in known]
    _require_columns(rows, names, "the model does not know")
    frame = pd.DataFrame.from_records(rows, columns=names)
    return _single(frame) if isinstance(encoder, TableEncoder) else numbers(model, frame.to_numpy(dtype=object), names)


def _require_columns(rows: list[Any], names: list[str], why: str) -> None:
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            raise Problem(422, f"row {place} is {short_repr(row)}, but row 0 is an object")
        if lacking := [name for name in names if name not in row]:
            raise Problem(422, f"row {place} has no {lacking[0]!r}")
        if len(row) > len(names):
            raise Problem(422, f"row {place} has {next(name for name in row if name not in names)!r}, which {why}")


def cells(encoder: TableEncoder, rows: list[Any]) -> pd.DataFrame:
    """Lists of cells as a table with the columns that the encoder was fitted on."""
    names = encoder.feature_names_in_
    _require_widths(rows, len(names))
    return _single(pd.DataFrame(rows, columns=names))


def _single(frame: pd.DataFrame) -> pd.DataFrame:
    """Refuses lists and objects as cells: their text would be taken for a category that was never seen."""
    for name in frame.columns:
        for place, cell in enumerate(frame[name] if frame[name].dtype == object else ()):
            if isinstance(cell, list | dict):
                raise Problem(422, f"row {place}, column {name!r} is {short_repr(cell)}; a cell is one value")
            if _is_beyond_floats(cell):
                raise Problem(422, f"row {place}, column {name!r} is {short_repr(cell)}, too large a number")
    return frame


def _require_widths(rows: list[Any], width: int) -> None:
    for place, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != width:
            count = f"{len(row)} values" if isinstance(row, list) else short_repr(row)
            raise Problem(422, f"row {place} is {count}, but the model was fitted on {width} columns")


def _unreadable(given: Any, names: Sequence[str] | None) -> str:
    """Which row and which column cannot be read as a number, or which row is of another length than the first."""
    first = given[0] if len(given) else None
    for place, row in enumerate(given):
        if isinstance(row, str | bytes) or not hasattr(row, "__len__"):
            return f"row {place} is {short_repr(row)}, not a list of numbers"
        if len(row) != len(first):  # type: ignore[arg-type] # row 0 has passed the check above
            return f"row {place} has {len(row)} values, but row 0 has {len(first)}"  # type: ignore[arg-type]
        for column, value in enumerate(row):
            if isinstance(value, str | dict) or (isinstance(value, list) != isinstance(first[column], list)):  # type: ignore[index]
                return f"row {place}, column {_name(names, column)} is {short_repr(value)}, not a number"
            if _is_beyond_floats(value):
                return f"row {place}, column {_name(names, column)} is {short_repr(value)}, too large a number"
    return "rows must be lists of numbers, all of one shape"


def _is_beyond_floats(value: Any) -> bool:
    """Whether a value, or one within its lists, is an integer that no float can hold."""
    if isinstance(value, list):
        return any(map(_is_beyond_floats, value))
    return isinstance(value, int) and value.bit_length() > sys.float_info.max_exp


def _not_finite(X: NDArray[Any], names: Sequence[str] | None) -> str:
    place = first_not_finite(X)
    row, *inside = place
    at = _name(names, inside[0]) if len(inside) == 1 else tuple(inside)
    what = "missing (NaN)" if np.isnan(X[place]) else "infinite"
    return f"row {row}, column {at} is {what}; every value must be finite"


def _name(names: Sequence[str] | None, column: int) -> str:
    return str(column) if names is None else repr(names[column])


def _sized(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape)) or "of one number"
