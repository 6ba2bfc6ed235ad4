"""Rows of a table: an array of numbers, or a data frame of any columns."""

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np
import pandas as pd

from offmap.data.table.cells import as_days
from offmap.explain.composition import Composition, FloatArray, Indices, Kind, Mask, clipped_distances
from offmap.explain.dates import days_of, usual_dates


@final
class Columns(Composition):
    """Rows whose parts are their columns.

    Args:
        X: The rows to explain, an array ``(n, d)`` or a data frame.
        reference: Normal rows of the same form.
        feature_names: Names of the columns of an array; by default those of a data frame, or "feature 0" and so on.

    Example:
        >>> table = Columns(np.array([[9.0, 1.0]]), np.array([[2.0, 3.0]]))
        >>> table.mixed(np.array([0]), np.array([0]), np.array([[True, False]]))
        array([[2., 1.]])
    """

    kind: ClassVar[Kind] = "features"
    most_donors: ClassVar[int] = 5

    def __init__(self, X: Any, reference: Any, feature_names: Sequence[str] | None = None) -> None:
        self._named = hasattr(X, "columns")
        if self._named and hasattr(reference, "columns"):
            reference = _same_columns(reference, list(X.columns))
        elif self._named:
            reference = pd.DataFrame(reference, columns=X.columns)
        self._X: Any = X if self._named else np.asarray(X)
        self._reference: Any = reference if self._named else np.asarray(reference)
        for name, rows in (("X", self._X), ("reference", self._reference)):
            if rows.ndim != 2:
                raise ValueError(f"{name} must have the shape (n, d), [row] for one row; got the shape {rows.shape}")
        if self._X.shape[1] != self._reference.shape[1]:
            raise ValueError(f"reference must have the {self._X.shape[1]} columns of X; got {reference.shape[1]}")
        self._names = _checked_names(feature_names, X, self._X.shape[1])
        known: Any = self._reference
        self._days = [days_of(known[name]) for name in known.columns] if self._named else []
        self.counts = np.full(len(self._X), self._X.shape[1], dtype=np.intp)

    def mixed(self, rows: Indices, donors: Indices, replaced: Mask) -> Any:
        """Rows with some values of reference rows."""
        if not self._named:
            return np.where(replaced, self._reference[donors], self._X[rows])
        columns = {}
        for place, name in enumerate(self._X.columns):
            own = self._X[name].iloc[rows].reset_index(drop=True)
            other = self._reference[name].iloc[donors].reset_index(drop=True)
            columns[name] = _chosen(own, other, replaced[:, place])
        return pd.DataFrame(columns)

    def distances(self) -> FloatArray:
        """Clipped distances; two different categories are as far apart as two distant numbers."""
        if not self._named:
            return clipped_distances(self._X.astype(np.float64), self._reference.astype(np.float64))
        squared = [_column_distances(self._X[name], self._reference[name]) ** 2 for name in self._X.columns]
        return np.sqrt(np.sum(squared, axis=0))

    def names(self, row: int) -> tuple[str, ...]:
        """The names of the columns."""
        return self._names

    def values(self, row: int) -> tuple[Any, ...]:
        """The values of a row."""
        return self._row(self._X, row)

    def usual(self, donors: Indices) -> tuple[Any, ...]:
        """The range of each number and of dates, the set of the values of anything else."""
        rows = [self._row(self._reference, int(donor)) for donor in donors]
        found = [_usual(values) for values in zip(*rows, strict=True)]
        # One row alone is what a value may be replaced with: a cell, not a span of time.
        spans = {
            j: usual_dates(days[donors]) for j, days in enumerate(self._days) if days is not None and len(rows) > 1
        }
        return tuple(spans.get(j) or usual for j, usual in enumerate(found))

    def reference(self, row: int) -> Any:
        """The values of a reference row."""
        return self._row(self._reference, row)

    def _row(self, table: Any, row: int) -> tuple[Any, ...]:
        return tuple(map(_plain, table.iloc[row].tolist())) if self._named else tuple(table[row].tolist())


def _same_columns(reference: Any, wanted: list[Any]) -> Any:
    missing = [name for name in wanted if name not in set(reference.columns)]
    if missing:
        raise ValueError(f"reference must have the columns of X; it has no column {missing[0]!r}")
    return reference[wanted]


def _checked_names(names: Sequence[str] | None, X: Any, width: int) -> tuple[str, ...]:
    if names is None:
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else [f"feature {j}" for j in range(width)]
    if len(names) != width:
        raise ValueError(f"feature_names must have one name for each of the {width} columns of X; got {len(names)}")
    return tuple(names)


def _chosen(own: "pd.Series[Any]", other: "pd.Series[Any]", replaced: Mask) -> Any:
    """One column of the mix; categories are widened to those of both sides."""
    if own.dtype != other.dtype:
        numbers = all(pd.api.types.is_numeric_dtype(side) for side in (own, other))
        own, other = (side.astype(np.float64 if numbers else object) for side in (own, other))
    return own.mask(replaced, other)


def _column_distances(column: Any, known: Any) -> FloatArray:
    if all(_has_numbers(side) for side in (column, known)):
        return clipped_distances(_numbers(column), _numbers(known))
    both = pd.concat([column.astype(object), known.astype(object)])
    codes = pd.factorize(both.where(both.notna(), None))[0].astype(np.float64)
    different = codes[: len(column), None] != codes[None, len(column) :]
    return np.where(different, _DIFFERENT, 0.0)


def _has_numbers(column: Any) -> bool:
    return pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column)


def _numbers(column: Any) -> FloatArray:
    if pd.api.types.is_datetime64_any_dtype(column):
        return as_days(column, "ISO8601").values[:, None]
    return column.to_numpy(dtype=np.float64, na_value=np.nan)[:, None]


def _plain(cell: Any) -> Any:
    """A cell of a data frame as Python has it: pandas has several words for a gap, and integers that are no ``int``."""
    if pd.api.types.is_scalar(cell) and pd.isna(cell):
        return None
    return cell.item() if isinstance(cell, np.generic) else cell


def _usual(values: tuple[Any, ...]) -> Any:
    known = [value for value in values if not pd.isna(value)]
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return min(known), max(known)
    return frozenset(values)


# What a difference of category counts for: as much as the clipped difference of numbers.
_DIFFERENT = 1.5
