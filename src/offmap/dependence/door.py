"""The door for arrays of variables: checked once as they come in."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

FloatArray = NDArray[np.float64]


def check_variable(name: str, values: ArrayLike) -> FloatArray:
    """A variable as ``(n, d)`` finite numbers; a flat array is one column."""
    rows: NDArray[Any] = check_array(
        values, dtype=np.float64, ensure_2d=False, allow_nd=True, ensure_min_samples=2, input_name=name
    )
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"{name} must be (n,) or (n, d) numbers; got shape {rows.shape}")
    return rows


def check_variables(names: Sequence[str], variables: Sequence[ArrayLike]) -> list[FloatArray]:
    """Variables of as many rows each."""
    checked = [check_variable(name, values) for name, values in zip(names, variables, strict=True)]
    lengths = [len(rows) for rows in checked]
    if len(set(lengths)) > 1:
        counted = ", ".join(f"{name} has {length}" for name, length in zip(names, lengths, strict=True))
        raise ValueError(f"{' and '.join(names)} must have as many rows; {counted}")
    return checked


def standardised(names: Sequence[str], variables: Sequence[FloatArray]) -> list[FloatArray]:
    """Columns with mean 0 and standard deviation 1, without those that are constant and share nothing."""
    return [_standardised(name, rows) for name, rows in zip(names, variables, strict=True)]


def _standardised(name: str, rows: FloatArray) -> FloatArray:
    mean, spread = rows.mean(0), rows.std(0)
    varies = spread > 1e-12 * np.maximum(1e-300, np.abs(mean))
    if not varies.any():
        raise ValueError(f"{name} must vary; all of its columns are constant")
    return (rows[:, varies] - mean[varies]) / spread[varies]


def jittered(variables: Sequence[FloatArray], rng: np.random.Generator) -> list[FloatArray]:
    """Standardised variables with a noise that breaks ties between rows and is too small for anything else."""
    return [variable + 1e-9 * rng.normal(size=variable.shape) for variable in variables]
