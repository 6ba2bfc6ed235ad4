"""The scale of the known classes: how far apart rows of one class lie, feature by feature and as a whole."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float64]
# The variance of a feature within classes is drawn this far towards the mean variance: few rows measure it badly.
_SHRINKAGE = 0.5
# A row further from its centre than this share of known rows from theirs fits nowhere.
_REACH = 0.975


@dataclass(frozen=True, eq=False)
class Spread:
    """Rows divided by the spread within known classes, so that one unit means the same in every feature.

    Args:
        scale: What each feature is divided by.
        rows: Scaled rows of the known classes.
        codes: Their classes, as 0, 1, …
        centres: Mean row of each class.
        reach: Distance to the own mean that nearly all known rows keep.
    """

    scale: Vectors
    rows: Vectors
    codes: NDArray[np.int64]
    centres: Vectors
    reach: float

    @classmethod
    def of(cls, X: NDArray[np.float32], codes: NDArray[np.int64]) -> Self:
        """Measures the rows ``X`` of known classes.

        Example:
            >>> spread = Spread.of(np.array([[0.0, 0], [2, 0], [8, 1], [6, 1]], np.float32), np.array([0, 0, 1, 1]))
            >>> spread.scale.round(2), round(spread.reach, 2)
            (array([0.87, 0.5 ]), 1.15)
        """
        within = (X - means(np.asarray(X, np.float64), codes)[codes]).var(axis=0)
        level = max(float(within.mean()), 1e-12)
        scale = np.sqrt((1 - _SHRINKAGE) * within + _SHRINKAGE * level)
        rows = X / scale
        centres = means(rows, codes)
        reach = float(np.quantile(np.linalg.norm(rows - centres[codes], axis=1), _REACH))
        return cls(scale, rows, codes, centres, max(reach, 1e-9))

    def transform(self, X: NDArray[np.float32]) -> Vectors:
        """Rows on the scale of the known classes."""
        return np.asarray(X / self.scale, dtype=np.float64)


def means(rows: Vectors, codes: NDArray[np.int64]) -> Vectors:
    """The mean row of each code 0, 1, …, each of which must occur."""
    sums = np.zeros((int(codes.max()) + 1, rows.shape[1]))
    np.add.at(sums, codes, rows)
    return sums / np.bincount(codes)[:, None]


def distances(rows: Vectors, centres: Vectors) -> Vectors:
    """The Euclidean distance of each row to each centre."""
    squares = (rows**2).sum(axis=1)[:, None] - 2 * rows @ centres.T + (centres**2).sum(axis=1)
    return np.sqrt(np.maximum(squares, 0))
