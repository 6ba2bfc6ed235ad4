"""How far the statistics of a row are from those of reference rows, on either side."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.covariance import ledoit_wolf
from torch import Tensor

Statistics = NDArray[np.float64]


@dataclass(frozen=True)
class NormalScores:
    r"""Turns each statistic into a normal score by its rank among $m$ reference values, ties by the middle rank:

    $$\Phi^{-1}\left(\frac{\#\{h < s\} + \#\{h \le s\} + 1}{2 (m + 1)}\right).$$

    Ranks remove the scale and the skew of a statistic. Beyond the smallest and the largest reference value the score
    continues linearly, with the slope from the median to that value.

    Args:
        values: Reference values in ascending order, one row per statistic.
    """

    values: Tensor

    @classmethod
    def fit(cls, reference: Statistics) -> Self:
        """Sorts the reference statistics ``(m, k)``."""
        return cls(torch.from_numpy(np.sort(reference, axis=0).T.copy()))

    def __call__(self, statistics: Tensor) -> Tensor:
        """The normal scores of ``(n, k)`` statistics."""
        found = statistics.double().T.contiguous()
        ranks = sum(torch.searchsorted(self.values, found, right=right).double() for right in (False, True))
        count = self.values.shape[1]
        inside = torch.special.ndtri((ranks + 1) / (2 * (count + 1)))
        low, middle, high = (self.values[:, place : place + 1] for place in (0, count // 2, count - 1))
        outermost = torch.special.ndtri(inside.new_tensor((2 * count + 0.5) / (2 * count + 2)))
        above = (found - high).clamp(min=0) / (high - middle).clamp(min=_SMALLEST_SPREAD)
        below = (low - found).clamp(min=0) / (middle - low).clamp(min=_SMALLEST_SPREAD)
        return (inside + outermost * (above - below)).T


@dataclass(frozen=True)
class Whitening:
    r"""Decorrelates scores: $\Sigma^{-1/2} (s - m)$ with the mean and the shrunk covariance of the reference scores."""

    mean: Tensor
    factor: Tensor

    @classmethod
    def fit(cls, scores: Tensor) -> Self:
        """Estimates mean and covariance."""
        # Shrinkage keeps the inverse bounded where there are hardly more rows than statistics.
        covariance, _ = ledoit_wolf(scores.numpy())
        values, vectors = np.linalg.eigh(np.atleast_2d(covariance))
        factor = vectors / np.sqrt(np.maximum(values, _SMALLEST_VARIANCE * values.max() + 1e-12))
        return cls(scores.mean(0), torch.from_numpy(factor))

    def __call__(self, scores: Tensor) -> Tensor:
        """The decorrelated scores."""
        return (scores - self.mean) @ self.factor


@dataclass(frozen=True)
class Mahalanobis:
    """The squared Mahalanobis distance of normal scores from the mean of the reference rows."""

    normal: NormalScores
    whiten: Whitening

    @classmethod
    def fit(cls, reference: Statistics) -> Self:
        """Estimates ranks, mean and covariance from the reference statistics."""
        normal = NormalScores.fit(reference)
        return cls(normal, Whitening.fit(normal(torch.from_numpy(reference))))

    def __call__(self, statistics: Tensor) -> Tensor:
        """The squared distance of each row."""
        return self.whiten(self.normal(statistics)).square().sum(1)


@dataclass(frozen=True)
class LocalDistanceRatio:
    r"""How much farther a row is from its neighbours than those are from theirs, as a normal score.

    In decorrelated scores, $d(s)$ is the mean distance to the $k$ nearest reference rows. It is divided by the mean of
    $d$ over those $k$ rows, and the logarithm of this ratio is ranked among the ratios of the reference rows. The
    division matters where reference rows are dense: a novel row may be close to them and still be much farther than
    they are from each other.

    Args:
        whiten: Decorrelates the scores.
        rows: The decorrelated reference rows.
        radii: Their mean distance to their neighbours.
        ranks: The distribution of their ratios.
        n_neighbors: How many neighbours $k$ count.
        skip_self: Whether a row that equals a reference row is compared with the others, as in ``fit``.

    Reference: Breunig et al., LOF: Identifying Density-Based Local Outliers, SIGMOD 2000.
    """

    whiten: Whitening
    rows: Tensor
    radii: Tensor
    ranks: NormalScores
    n_neighbors: int
    skip_self: bool = False

    @classmethod
    def fit(cls, scores: Tensor, n_neighbors: int = 10, *, skip_self: bool = False) -> Self:
        """Computes the ratio of each reference row among the others."""
        whiten = Whitening.fit(scores)
        rows = whiten(scores).float()
        count = max(1, min(n_neighbors, len(rows) - 1))
        radii, nearest = _nearest(torch.cdist(rows, rows).fill_diagonal_(torch.inf), count)
        ratios = (radii / radii[nearest].mean(1)).log()
        ranks = NormalScores.fit(ratios[:, None].double().numpy())
        return cls(whiten, rows, radii, ranks, n_neighbors, skip_self)

    def __call__(self, scores: Tensor) -> Tensor:
        """The score of each row."""
        rows = self.whiten(scores).float()
        distances = torch.cdist(rows, self.rows)
        if self.skip_self and len(self.rows) > 1:
            closest, second = distances.topk(2, dim=1, largest=False).values.split(1, dim=1)
            distances = distances.masked_fill((distances == closest) & (closest <= _ROUNDING * second), torch.inf)
        available = len(self.rows) - self.skip_self
        radius, nearest = _nearest(distances, max(1, min(self.n_neighbors, available)))
        return self.ranks((radius / self.radii[nearest].mean(1)).log()[:, None])[:, 0]


def _nearest(distances: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The mean distance to the ``count`` nearest rows, and which they are."""
    found = distances.topk(count, dim=1, largest=False)
    # Duplicates have distance 0, and a single row has no neighbour.
    return found.values.mean(1).clamp(_CLOSEST, _FARTHEST), found.indices


_SMALLEST_SPREAD = 1e-6
_SMALLEST_VARIANCE = 1e-3
_CLOSEST, _FARTHEST = 1e-3, 1e6
# Rounding of distances between equal rows, as a share of the distance to the next row.
_ROUNDING = 1e-2
