"""Sums over rows that a mean, a covariance and its shrinkage follow from; sums of parts add up to that of the whole."""

from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
# Rows whose squares are held at once.
_PIECE = 8192


@dataclass(frozen=True)
class Moments:
    r"""Number and mean of rows, and sums of products of their deviations $y$ from the mean.

    Args:
        count: Number of rows.
        mean: Mean row.
        second: $\sum y_i y_j$.
        third: $\sum y_i^2 y_j$.
        fourth: $\sum y_i^2 y_j^2$.

    Example:
        >>> one, other = Moments.of(np.array([[0.0], [2.0]])), Moments.of(np.array([[4.0], [6.0]]))
        >>> one.joined(other).mean, one.joined(other).second
        (array([3.]), array([[20.]]))
    """

    count: float
    mean: Matrix
    second: Matrix
    third: Matrix
    fourth: Matrix

    @classmethod
    def of(cls, rows: NDArray[np.floating]) -> Self:
        """Sums over rows, in double precision."""
        mean = rows.mean(axis=0, dtype=np.float64)
        second, third, fourth = (np.zeros((len(mean), len(mean))) for _ in range(3))
        for start in range(0, len(rows), _PIECE):
            deviations = rows[start : start + _PIECE] - mean
            squares = deviations**2
            second += deviations.T @ deviations
            third += squares.T @ deviations
            fourth += squares.T @ squares
        return cls(float(len(rows)), mean, second, third, fourth)

    def about(self, centre: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        r"""The three sums for deviations from ``centre`` in place of the mean.

        With $\delta$ from ``centre`` to the mean, $(y_i + \delta_i)^2 (y_j + \delta_j)^2$ is multiplied out; terms with
        a single $y$ vanish.
        """
        n, shift = self.count, self.mean - centre
        own, other = shift[:, None], shift[None, :]
        variance, third = np.diag(self.second), self.third
        second = self.second + n * own * other
        fourth = self.fourth + 2 * other * third + 2 * own * third.T + 4 * own * other * self.second
        fourth += other**2 * variance[:, None] + own**2 * variance[None, :] + n * own**2 * other**2
        third = third + other * variance[:, None] + 2 * own * self.second + n * own**2 * other
        return second, third, fourth

    def joined(self, *others: "Moments") -> "Moments":
        """The sums over the rows of all."""
        parts = [self, *others]
        count = sum(part.count for part in parts)
        # From the first mean, so that rows far from zero lose no digits.
        mean = self.mean + sum((part.count / count * (part.mean - self.mean) for part in parts), np.zeros(()))
        sums = reduce(lambda left, right: [a + b for a, b in zip(left, right, strict=True)],
                      (list(part.about(mean)) for part in parts))  # fmt: skip
        return Moments(count, mean, *sums)

    def shrinkage(self, scale: Matrix) -> float:
        """Ledoit and Wolf's share for the rows divided by ``scale``; 1 if there is no spread at all.

        Reference: Ledoit and Wolf, A Well-Conditioned Estimator for Large-Dimensional Covariance Matrices, 2004.
        """
        covariance = self.covariance(scale)
        size, trace = len(covariance), float(np.trace(covariance))
        if trace == 0:
            return 1.0
        squares = float((self.fourth / np.outer(scale**2, scale**2)).sum()) / self.count
        norm = float((covariance**2).sum())
        away = norm - trace**2 / size
        noise = min((squares - norm) / self.count, away)
        return 0.0 if noise <= 0 else noise / away

    def covariance(self, scale: Matrix) -> Matrix:
        """The covariance of the rows divided by ``scale``."""
        return self.second / np.outer(scale, scale) / self.count
