"""Columns that single precision cannot hold: they are shifted and scaled in double precision before the cast.

A column at 1e12 with a spread of 1,000 keeps no digit of its spread in ``float32``. Columns that ``float32`` holds well
are left as they are, to the byte.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Columns = NDArray[np.float64]
# A column is shifted if the rounding of float32 at its mean exceeds this share of its standard deviation.
_LOST = 2.0**-10
_ROUNDING = 2.0**-24
# Beyond these the squares of float32 overflow or vanish.
_LARGEST, _SMALLEST = 1e18, 1e-18
_BLOCK = 64


class Shift(NamedTuple):
    """What is subtracted from each column, and the power of two that it is divided by."""

    shift: Columns
    scale: Columns

    @classmethod
    def fit(cls, rows: NDArray[Any]) -> Self | None:
        """Measures the columns of ``rows``; None if single precision holds all of them well.

        Example:
            >>> Shift.fit(np.array([[1e12, 5.0], [1e12 + 1000, 7.0]])).shift
            array([1.e+12, 0.e+00])
            >>> Shift.fit(np.array([[1.0, 5.0], [2.0, 7.0]])) is None
            True
        """
        if rows.ndim != 2 or np.can_cast(rows.dtype, np.float32):
            return None
        blocks = [_measured(rows[:, start : start + _BLOCK]) for start in range(0, rows.shape[1], _BLOCK)]
        found = cls(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))
        return None if not found.shift.any() and (found.scale == 1).all() else found

    def apply(self, rows: NDArray[Any]) -> Columns:
        """The shifted and scaled rows."""
        with np.errstate(over="ignore", under="ignore"):
            return (rows - self.shift) / self.scale

    def undo(self, rows: NDArray[Any]) -> Columns:
        """Shifted and scaled rows in their own units."""
        return rows * self.scale + self.shift


def _measured(block: NDArray[Any]) -> tuple[Columns, Columns]:
    """Shift and scale of some columns. Their squares would overflow, so they are brought near 1 first, exactly."""
    unit = _power_of_two(np.abs(block).max(axis=0).astype(np.float64))
    near_one = block / unit
    mean, spread = near_one.mean(axis=0), near_one.std(axis=0)
    varies = near_one.max(axis=0) > near_one.min(axis=0)
    lost = varies & (_ROUNDING * np.abs(mean) > _LOST * spread)
    centre = np.where(lost, mean, 0.0)
    largest = np.abs(near_one - centre).max(axis=0) * unit
    with np.errstate(over="ignore", under="ignore"):
        spread = spread * unit
    strange = varies & ((largest > _LARGEST) | (spread < _SMALLEST))
    return centre * unit, np.where(strange, _power_of_two(spread), 1.0)


def _power_of_two(sizes: Columns) -> Columns:
    """The power of two next to each size, which divides without rounding; 1 for 0."""
    exponents = np.clip(np.frexp(sizes)[1], -1000, 1000)
    return np.where(sizes > 0, np.ldexp(1.0, exponents), 1.0)
