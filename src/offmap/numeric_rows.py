"""Rows that must be finite numbers: the first cell that is not is named by its row and column."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, validate_data

from offmap.errors import short_repr

_ENCODER = "offmap.data.TableEncoder reads such tables"


def numeric_rows(estimator: Any, X: ArrayLike, *, reset: bool, named: bool) -> NDArray[Any]:
    """``X`` as an array of finite numbers; ``ValueError`` names what is not.

    Args:
        estimator: The estimator that reads the rows.
        X: The input as given by the user.
        reset: True in ``fit``: the estimator learns the number and names of the features.
        named: Whether the number and names of the features are checked, or learnt.
    """
    settings: dict[str, Any] = {"allow_nd": True, "dtype": "numeric", "ensure_all_finite": False}
    try:
        if named:
            rows = validate_data(estimator, X, reset=reset, **settings)
        else:
            rows = check_array(X, input_name="X", estimator=estimator, **settings)
        # Lists with None in them are left as objects.
        rows = rows.astype(np.float64) if rows.dtype == object else rows
    except ValueError:
        _require_one_length(X)
        if (text := _text(X)) is None:
            raise
        raise ValueError(f"X must hold numbers, but {text}; {_ENCODER}") from None
    require_finite(rows, getattr(X, "columns", None), getattr(X, "index", None))
    return rows


def require_finite(rows: NDArray[Any], names: Any = None, index: Any = None) -> None:
    """Refuses NaN and infinity.

    Args:
        rows: The rows.
        names: Names of the columns.
        index: Index of the frame that the rows come from; rows are called by it if it holds integers.

    Example:
        >>> require_finite(np.array([[1.0, 2.0], [np.nan, 3.0]]), ["age", "height"])
        Traceback (most recent call last):
        ValueError: Input X contains NaN: row 1, column 'age' is missing; fill such cells or leave the rows out, or ...
    """
    if rows.dtype.kind != "f" or np.isfinite(rows).all():
        return
    place = first_not_finite(rows)
    where = _where(_number(place[0], index), place[1:], names)
    if np.isnan(rows[place]):
        encoder = f", or use an encoder: {_ENCODER}" if rows.ndim == 2 else ""
        raise ValueError(f"Input X contains NaN: {where} is missing; fill such cells or leave the rows out{encoder}")
    raise ValueError(f"Input X contains infinity: {where}; every number must be finite")


def first_not_finite(rows: NDArray[Any]) -> tuple[int, ...]:
    """The place of the first number that is NaN or infinite.

    Example:
        >>> first_not_finite(np.array([[0.0, 1.0], [2.0, np.inf]]))
        (1, 1)
    """
    return tuple(np.argwhere(~np.isfinite(rows))[0].tolist())


def _require_one_length(X: Any) -> None:
    """Refuses lists of different lengths."""
    lengths = [len(row) for row in X if isinstance(row, list | tuple)] if isinstance(X, list | tuple) else []
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            raise ValueError(f"X must have rows of one length; row 0 has {lengths[0]} values, row {row} has {length}")


def _text(X: Any) -> str | None:
    """The first text that is no number, or the first text at all, in words; None if there is none."""
    cells: Any = np.array(X, dtype=object)
    places = [place for place in np.ndindex(cells.shape) if isinstance(cells[place], str)]
    found = next((place for place in places if not _is_number(cells[place])), places[0] if places else None)
    if found is None:
        return None
    row = _number(found[0], getattr(X, "index", None))
    return f"{_where(row, found[1:], getattr(X, 'columns', None))} is {short_repr(cells[found])}"


def _number(place: int, index: Any) -> int:
    """What a row is called: frames that are parts of a file are indexed by the rows of that file."""
    whole = isinstance(index, pd.Index) and pd.api.types.is_integer_dtype(index)
    return int(index[place]) if whole else place


def _where(row: int, place: tuple[int, ...], names: Any) -> str:
    if not place:
        return f"row {row}"
    if len(place) > 1:
        return f"row {row}, pixel {place}"
    return f"row {row}, column {place[0] if names is None else repr(str(names[place[0]]))}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
