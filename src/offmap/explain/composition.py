"""What rows are made of, and how to give a row some parts of a normal row: what the kinds of rows have in common."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["features", "text", "image"]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


class Composition(ABC):
    """Rows to explain beside normal reference rows, both made of parts: columns, words, or places of an image.

    Attributes:
        counts: Number of parts of each row to explain.
    """

    kind: ClassVar[Kind]
    # How many of the nearest normal rows replace parts: fewer where scoring is slow.
    most_donors: ClassVar[int]
    # Whether a contribution is measured by taking the part out of the row, not by putting it into a normal row.
    takes_out: ClassVar[bool] = False

    counts: Indices

    @abstractmethod
    def mixed(self, rows: Indices, donors: Indices, replaced: Mask) -> Any:
        """Rows as the model takes them, whose ``replaced`` parts come from a reference row.

        Args:
            rows: Which row to explain each mixed row starts from.
            donors: Which reference row gives the replaced parts.
            replaced: One line per mixed row and one column per part; columns beyond ``counts`` are ignored.
        """

    @abstractmethod
    def distances(self) -> FloatArray:
        """Distance of each row to explain from each reference row."""

    @abstractmethod
    def names(self, row: int) -> tuple[str, ...]:
        """The name of each part of a row."""

    @abstractmethod
    def values(self, row: int) -> tuple[Any, ...]:
        """What each part of a row to explain holds, as a reader wants to see it."""

    @abstractmethod
    def usual(self, donors: Indices) -> tuple[Any, ...]:
        """What each part holds in the given reference rows: a pair (lowest, highest), a set of values, or None."""

    @abstractmethod
    def reference(self, row: int) -> Any:
        """A whole reference row."""

    def per_part(self, contributions: FloatArray) -> FloatArray:
        """Contributions of parts from those of the features that the model sees."""
        return contributions


def clipped_distances(rows: FloatArray, reference: FloatArray) -> FloatArray:
    r"""Distances in which a feature counts for at most 1.5 standard deviations.

    $$\sqrt{\sum_j \min(g_j, 1.5)^2 + 0.001 \log(1 + g_j)}, \quad g_j = |x_j - r_j| / \sigma_j$$

    A few strange values of a row must not choose its neighbours, which shall be alike in everything else; the small
    second term decides where everything is strange. A missing value is far from any other value.

    Args:
        rows: Rows ``(n, d)``.
        reference: Normal rows ``(m, d)``, which give the standard deviations.

    Example:
        >>> clipped_distances(np.array([[9.0, 0.0]]), np.array([[0.0, 0.0], [2.0, 2.0]])).round(2)
        array([[1.5 , 2.12]])
    """
    found = np.zeros((len(rows), len(reference)), dtype=np.float64)
    for column, known in zip(rows.T, reference.T, strict=True):
        spread = np.nanstd(known) if np.isfinite(known).any() else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.abs(column[:, None] - known[None]) / spread
        both_missing = np.isnan(column)[:, None] & np.isnan(known)[None]
        gap[both_missing | (column[:, None] == known[None])] = 0.0
        gap = np.nan_to_num(gap, nan=_FAR, posinf=_FAR)
        found += np.minimum(gap, _CLIP) ** 2 + _TIE * np.log1p(gap)
    return np.sqrt(found)


_CLIP, _FAR, _TIE = 1.5, 1e9, 1e-3
