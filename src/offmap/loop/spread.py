"""The scale of the known classes: how far apart rows of one class lie, feature by feature and as a whole."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Vectors = NDArray[np.float64]
# A feature's variance within classes counts as at least this share of the median one: few rows measure it badly.
_FLOOR = 0.1
# A row fits nowhere if it lies further from its centre than this share of known rows from theirs, and a margin more,
# since the centres of groups are known less well.
_REACH, _MARGIN = 0.99, 1.1
# Rows have one unit, as embeddings of unit length do, if the standard deviation of their lengths is below this share.
_SAME_LENGTH = 1e-3


@dataclass(frozen=True, eq=False)
class Spread:
    """Rows divided by the spread within known classes, so that one unit means the same in every feature.

    Args:
        scale: What each feature is divided by.
        rows: Scaled rows of the known classes.
        codes: Their classes, as 0, 1, …
        centres: Mean row of each class.
        reach: Distance to the own mean that known rows keep.
    """

    scale: Vectors
    rows: Vectors
    codes: NDArray[np.int64]
    centres: Vectors
    reach: float

    @cached_property
    def mean(self) -> Vectors:
        """The mean of all known rows."""
        return self.rows.mean(axis=0)

    @cached_property
    def deviation(self) -> Vectors:
        """The standard deviation of all known rows, feature by feature."""
        return self.rows.std(axis=0)

    @classmethod
    def of(cls, X: NDArray[np.float32], codes: NDArray[np.int64], *, one_unit: bool = False) -> Self:
        """Measures the rows ``X`` of known classes.

        Args:
            X: Rows.
            codes: Their classes, as 0, 1, …
            one_unit: Whether all features share one unit, as pixels do; they are then divided by the same number.

        Example:
            >>> spread = Spread.of(np.array([[0.0, 0], [2, 8], [8, 0], [6, 8]], np.float32), np.array([0, 0, 1, 1]))
            >>> spread.scale.round(2), round(spread.reach, 2)
            (array([1., 4.]), 1.56)
        """
        precise = np.asarray(X, np.float64)
        within = (precise - means(precise, codes)[codes]).var(axis=0)
        scale = _scale(within, one_unit or _same_length(precise))
        rows = precise / scale
        centres = means(rows, codes)
        reach = _MARGIN * float(np.quantile(np.linalg.norm(rows - centres[codes], axis=1), _REACH))
        return cls(scale, rows, codes, centres, max(reach, 1e-9))

    def apart(self, code: int) -> float:
        """The distance from the mean of one class to the nearest other."""
        others = np.delete(self.centres, code, axis=0)
        return float(distances(self.centres[code : code + 1], others).min())

    def transform(self, X: NDArray[np.float32]) -> Vectors:
        """Rows on the scale of the known classes."""
        return np.asarray(X / self.scale, dtype=np.float64)


def _scale(within: Vectors, one_unit: bool) -> Vectors:
    if one_unit:
        return np.full(len(within), np.sqrt(max(float(within.mean()), 1e-24)))
    varied = within[within > 0]
    least = _FLOOR * float(np.median(varied)) if len(varied) else 1.0
    return np.sqrt(np.maximum(within, least))


def _same_length(rows: Vectors) -> bool:
    length = np.linalg.norm(rows, axis=1)
    return bool(length.std() < _SAME_LENGTH * length.mean())


def means(rows: Vectors, codes: NDArray[np.int64]) -> Vectors:
    """The mean row of each code 0, 1, …, each of which must occur."""
    # A sparse product sums far faster than numpy's indexed addition.
    members = sparse.csr_matrix((np.ones(len(codes)), (codes, np.arange(len(codes)))))
    return np.asarray(members @ rows) / np.bincount(codes)[:, None]


def distances(rows: NDArray[Any], centres: NDArray[Any]) -> NDArray[Any]:
    """The Euclidean distance of each row to each centre."""
    squares = (rows**2).sum(axis=1)[:, None] - 2 * rows @ centres.T + (centres**2).sum(axis=1)
    return np.sqrt(np.maximum(squares, 0))
