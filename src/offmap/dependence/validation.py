"""Checks the arrays that callers pass in, and prepares their columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

FloatArray = NDArray[np.float64]


def check_variable(name: str, values: ArrayLike) -> FloatArray:
    """Returns a variable as finite numbers of shape ``(n, d)``; a 1-D array becomes one column."""
    rows = _numbers(name, values)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"{name} must have shape (n,) or (n, d); got shape {rows.shape}")
    return rows


def _numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    try:
        return check_array(
            values, dtype=np.float64, ensure_2d=False, allow_nd=True, ensure_min_samples=2, input_name=name
        )
    except (TypeError, ValueError) as error:
        if f"Input {name} " in str(error):
            raise
        reason = str(error).splitlines()[0]
        raise ValueError(f"{name} must hold numbers, in at least 2 rows: {reason}") from error


def check_variables(names: Sequence[str], variables: Sequence[ArrayLike]) -> list[FloatArray]:
    """Checks each variable, and that all have the same number of rows."""
    checked = [check_variable(name, values) for name, values in zip(names, variables, strict=True)]
    lengths = [len(rows) for rows in checked]
    if len(set(lengths)) > 1:
        counted = ", ".join(f"{name} has {length}" for name, length in zip(names, lengths, strict=True))
        raise ValueError(f"{' and '.join(names)} must have the same number of rows; {counted}")
    return checked


def name_variables(variables: Any) -> dict[str, ArrayLike]:
    """Names each variable: the items of a list, or the columns of a matrix or a DataFrame.

    Example:
        >>> [*name_variables(pd.DataFrame({"age": [1, 2], "height": [3, 4]}))]
        ["column 'age'", "column 'height'"]
        >>> [*name_variables([[1, 2], [3, 4]])]
        ['variables[0]', 'variables[1]']
    """
    if isinstance(variables, list | tuple):
        named: dict[str, ArrayLike] = {f"variables[{place}]": values for place, values in enumerate(variables)}
    elif isinstance(variables, pd.DataFrame):
        named = {f"column {name!r}": variables.iloc[:, place] for place, name in enumerate(variables.columns)}
        if len(named) < variables.shape[1]:
            raise ValueError("variables must be a DataFrame whose column names differ")
    elif getattr(variables, "ndim", None) == 2:
        named = {f"variables[:, {place}]": values for place, values in enumerate(np.asarray(variables).T)}
    else:
        raise ValueError(
            "variables must be a list of arrays, or a matrix or DataFrame whose columns are the variables; "
            f"got {type(variables).__name__}"
        )
    if len(named) < 2:
        raise ValueError(f"variables must be at least 2; got {len(named)}")
    return named


def standardise(names: Sequence[str], variables: Sequence[FloatArray]) -> list[FloatArray]:
    """Scales columns to mean 0 and standard deviation 1 and drops constant columns, which carry no information."""
    return [_standardise(name, rows) for name, rows in zip(names, variables, strict=True)]


def _standardise(name: str, rows: FloatArray) -> FloatArray:
    rows = _without_overflow(varying_columns(name, rows))[0]
    return (rows - rows.mean(0)) / rows.std(0)


def varying_columns(name: str, rows: FloatArray) -> FloatArray:
    """Drops constant columns; there must be another one."""
    varies = varying(rows)
    if not varies.any():
        raise ValueError(f"{name} must vary; all of its columns are constant")
    return rows[:, varies]


def varying(rows: FloatArray) -> NDArray[np.bool_]:
    """Marks the columns that are not constant."""
    return rows.max(0) > rows.min(0)


def _without_overflow(rows: FloatArray) -> tuple[FloatArray, NDArray[np.int32]]:
    """Columns divided by a power of two, which changes no digit, so that their squares are finite; and its exponent."""
    exponent = np.frexp(np.abs(rows).max(0))[1]
    return np.ldexp(rows, -exponent), exponent


def log_scale(rows: FloatArray) -> float:
    """Returns the sum of the logarithms of the standard deviations that ``standardise`` divides by.

    Example:
        >>> round(log_scale(np.array([[0.0, 7.0], [2 * np.e, 7.0]])), 3)
        1.0
    """
    scaled, exponent = _without_overflow(rows[:, varying(rows)])
    return float(np.log(scaled.std(0)).sum() + np.log(2) * exponent.sum())


def name_columns(name: str, rows: FloatArray) -> list[str]:
    """Names the columns of a variable that are not constant.

    Example:
        >>> name_columns("x", np.array([[0.0, 7.0, 1.0], [2.0, 7.0, 3.0]]))
        ['x[:, 0]', 'x[:, 2]']
        >>> name_columns("column 'age'", np.array([[0.0], [2.0]]))
        ["column 'age'"]
    """
    if rows.shape[1] == 1:
        return [name]
    return [f"{name}[:, {place}]" for place in np.flatnonzero(varying(rows))]


# Standard deviations of the noise that breaks ties between standardised rows.
TIE_NOISE = 1e-9


def break_ties(variables: Sequence[FloatArray], rng: np.random.Generator) -> list[FloatArray]:
    """Adds noise to standardised variables that is just large enough to break ties between rows."""
    return [variable + TIE_NOISE * rng.normal(size=variable.shape) for variable in variables]


def ranks(variables: Sequence[FloatArray], rng: np.random.Generator) -> list[FloatArray]:
    """The rank of each value within its column, from 1; equal values are ranked at random, and scale plays no part."""
    return [_ranks(variable, rng.normal(size=variable.shape)) for variable in variables]


def _ranks(rows: FloatArray, noise: FloatArray) -> FloatArray:
    found = np.empty_like(rows)
    for place in range(rows.shape[1]):
        found[np.lexsort((noise[:, place], rows[:, place])), place] = np.arange(1.0, len(rows) + 1)
    return found
