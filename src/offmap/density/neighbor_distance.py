"""The distance of a row to its nearest reference rows, in units of the distance that is typical among those."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from offmap.arrays import start_of_equal_end

Rows = NDArray[np.float64]


@dataclass(frozen=True)
class NeighborDistance:
    r"""The mean distance to the $k$ nearest reference rows, divided by its mean over the reference rows themselves.

    A reference row is not counted as its own neighbour, so scoring the training rows gives ordinary values, not 0.

    Args:
        reference: The reference rows.
        search: The search among them.
        n_neighbors: How many neighbours count.
        typical: The mean of the distance over the reference rows.

    Example:
        >>> distance = NeighborDistance.fit(np.array([[0.0], [1.0], [2.0]]))
        >>> distance(np.array([[2.0], [5.0]]))
        array([1., 3.])
    """

    reference: Rows
    search: NearestNeighbors
    n_neighbors: int
    typical: float

    @classmethod
    def fit(cls, rows: Rows, n_neighbors: int = 1) -> Self:
        """Indexes the reference rows; where they are few, all others are neighbours."""
        count = max(1, min(n_neighbors, len(rows) - 1))
        search = NearestNeighbors(n_neighbors=min(count + 1, len(rows))).fit(rows)
        # Called without rows, the search leaves out each row itself.
        typical = search.kneighbors(n_neighbors=count)[0].mean() if len(rows) > 1 else 1.0
        return cls(rows, search, count, max(float(typical), _SMALLEST_DISTANCE))

    def __call__(self, rows: Rows, *, new: bool = False) -> Rows:
        """The distance of each row; infinite for rows with infinite or missing values.

        Args:
            rows: The rows.
            new: Whether a row that equals a reference row is a new one, which has that row as a neighbour.
        """
        # Rows come in chunks of one size, filled up with equal rows: of those at the end, one is searched for.
        last = start_of_equal_end(rows)
        found = self._distances(rows[: last + 1], new)
        return np.concatenate([found, np.full(len(rows) - last - 1, found[-1])])

    def _distances(self, rows: Rows, new: bool) -> Rows:
        finite = np.isfinite(rows).all(axis=1, keepdims=True)
        distances, _ = self._neighbors(np.where(finite, rows, 0.0), new)
        return np.where(finite, distances.mean(axis=1, keepdims=True) / self.typical, np.inf)[:, 0]

    def contributions(self, rows: Rows) -> Rows:
        r"""The share of each feature in the distance of each row, by $d = \sum_j (x_j - r_j)^2 / d$; they sum to it.

        Example:
            >>> distance = NeighborDistance.fit(np.array([[0.0, 0.0], [1.0, 0.0]]))
            >>> distance.contributions(np.array([[4.0, 4.0]])).round(2)
            array([[1.8, 3.2]])
        """
        distances, neighbors = self._neighbors(rows)
        found = np.zeros_like(rows)
        for distance, neighbor in zip(distances.T[..., None], neighbors.T, strict=True):
            squares = (rows - self.reference[neighbor]) ** 2
            found += squares / np.maximum(distance, _SMALLEST_DISTANCE)
        return found / (self.typical * self.n_neighbors)

    def _neighbors(self, rows: Rows, new: bool = False) -> tuple[Rows, NDArray[np.intp]]:
        """Distances and positions of the neighbours that count."""
        _, places = self.search.kneighbors(rows)
        # Measured one by one: the search rounds differently with the number of rows that it is given.
        distances = np.sqrt(np.square(rows[:, None] - self.reference[places]).sum(axis=2))
        order = distances.argsort(axis=1, kind="stable")
        distances, places = (np.take_along_axis(found, order, axis=1) for found in (distances, places))
        # A reference row finds itself, up to rounding; any other row keeps its nearest neighbours.
        is_reference = (distances[:, :1] <= _ROUNDING * distances[:, -1:]) & (not new)
        count = self.n_neighbors
        chosen = (np.where(is_reference, found[:, -count:], found[:, :count]) for found in (distances, places))
        return next(chosen), next(chosen)


_SMALLEST_DISTANCE = 1e-6
_ROUNDING = 1e-3
