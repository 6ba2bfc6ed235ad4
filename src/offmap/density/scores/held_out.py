"""How far statistics are from those of held-out normal rows, on either side."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from sklearn.covariance import ledoit_wolf
from torch import Tensor

from offmap.density.scores.score import Statistics


@dataclass(frozen=True)
class NormalScores:
    r"""Turns each statistic into a normal score by its rank among $m$ held-out values, ties by the middle rank:

    $$\Phi^{-1}\left(\frac{\#\{h < s\} + \#\{h \le s\} + 1}{2 (m + 1)}\right).$$

    Ranks make the score blind to how a statistic is scaled or skewed. Outside the held-out values ranks say nothing
    more; there the score goes on in a straight line, at the slope from their median to the outermost of them.

    Args:
        values: Held-out values in ascending order, one row a statistic.
    """

    values: Tensor

    @classmethod
    def fit(cls, held_out: Statistics) -> Self:
        """Remembers the held-out statistics ``(m, k)``."""
        return cls(torch.from_numpy(np.sort(held_out, axis=0).T.copy()))

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
    r"""Decorrelates scores: $\Sigma^{-1/2} (s - m)$ with the mean and the shrunk covariance of the held-out ones."""

    mean: Tensor
    factor: Tensor

    @classmethod
    def fit(cls, scores: Tensor) -> Self:
        """Measures the held-out scores."""
        # Shrinkage keeps the inverse tame where there are hardly more rows than statistics.
        covariance, _ = ledoit_wolf(scores.numpy())
        values, vectors = np.linalg.eigh(np.atleast_2d(covariance))
        factor = vectors / np.sqrt(np.maximum(values, _SMALLEST_VARIANCE * values.max() + 1e-12))
        return cls(scores.mean(0), torch.from_numpy(factor))

    def __call__(self, scores: Tensor) -> Tensor:
        """The decorrelated scores."""
        return (scores - self.mean) @ self.factor


@dataclass(frozen=True)
class Mahalanobis:
    """The squared distance from the centre of the held-out rows, in decorrelated normal scores."""

    normal: NormalScores
    whiten: Whitening

    @classmethod
    def fit(cls, held_out: Statistics) -> Self:
        """Measures the held-out statistics."""
        normal = NormalScores.fit(held_out)
        return cls(normal, Whitening.fit(normal(torch.from_numpy(held_out))))

    def __call__(self, statistics: Tensor) -> Tensor:
        """The squared distance of each row."""
        return self.whiten(self.normal(statistics)).square().sum(1)


@dataclass(frozen=True)
class LocalRatio:
    r"""How much farther off a row is than its neighbours are from theirs, as a normal score.

    In decorrelated normal scores $d(s)$ is the mean distance to the ten nearest held-out rows. Where rows are simple
    they lie close together, and a novel row may lie close too: so $d(s)$ is compared with the mean of $d$ over those
    ten, and the logarithm of the ratio is ranked among the held-out rows' own.

    Reference: Breunig et al., LOF: Identifying Density-Based Local Outliers, SIGMOD 2000.
    """

    whiten: Whitening
    rows: Tensor
    radii: Tensor
    ranks: NormalScores

    @classmethod
    def fit(cls, scores: Tensor) -> Self:
        """Measures the normal scores of held-out rows, each row against the others."""
        whiten = Whitening.fit(scores)
        rows = whiten(scores).float()
        radii, nearest = _nearest(torch.cdist(rows, rows).fill_diagonal_(torch.inf), len(rows) - 1)
        ratios = (radii / radii[nearest].mean(1)).log()
        return cls(whiten, rows, radii, NormalScores.fit(ratios[:, None].double().numpy()))

    def __call__(self, scores: Tensor) -> Tensor:
        """The score of each row."""
        rows = self.whiten(scores).float()
        radius, nearest = _nearest(torch.cdist(rows, self.rows), len(self.rows))
        return self.ranks((radius / self.radii[nearest].mean(1)).log()[:, None])[:, 0]


def _nearest(distances: Tensor, available: int) -> tuple[Tensor, Tensor]:
    """The mean distance to the nearest rows, and which they are."""
    found = distances.topk(max(1, min(_NEIGHBOURS, available)), dim=1, largest=False)
    # Copies of one image have no distance, and a single row has no neighbour.
    return found.values.mean(1).clamp(_CLOSEST, _FARTHEST), found.indices


_SMALLEST_SPREAD = 1e-6
_SMALLEST_VARIANCE = 1e-3
_NEIGHBOURS = 10
_CLOSEST, _FARTHEST = 1e-3, 1e6
