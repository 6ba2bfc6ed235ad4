"""The nearest row that was trained on, as it is and as the autoencoder sees it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors
from torch import Tensor
from torch.nn.functional import pad

from offmap.density.scores.score import Judge, Models, Part, Score, Statistics


class Nearest(Score):
    r"""The distance to the nearest training row, in two views that weigh the same.

    One view is the row, $v_1(x) = x$. The other is what the model makes of it, $v_2(x) = \left(\frac{x - \hat x}
    {\sigma}, \mu(x)\right)$: what the decoder leaves unexplained in the units of the noise, and where the encoder puts
    it in the units of the prior. With $R$ the training rows,

    $$\frac12 \sum_{i=1}^2 \frac{\min_{r \in R} \|v_i(x) - v_i(r)\|}{m_i},$$

    where $m_i$ is the mean distance from a training row to the nearest other one. The first view sees rows that are far
    off or between two kinds; the second, rows that break how features go together, however small the features' spread.
    Cost: one pass, and a search among some thousand rows. Fails: on large images, where a shift by one pixel is farther
    than another picture; and it has one side only. Of training rows it tells the distance to the nearest other one.
    """

    needs: ClassVar[frozenset[Part]] = frozenset({"training"})

    def statistics(self, models: Models, X: Tensor) -> Tensor:
        """Both views side by side, the first filled up with zeros to the width of the second."""
        network = models.network
        expected, posterior = network.reconstruct(X)
        residual = (X - expected) / network.noise.scale
        row = pad(X.flatten(1), (0, posterior.mean.shape[1]))
        return torch.cat([row, residual.flatten(1), posterior.mean], dim=1)

    def judge(self, normal: Statistics) -> Judge:
        """The mean of the two distances to the nearest of ``normal``."""
        return _TwoViews(*(_Distance.among(view) for view in np.split(normal, 2, axis=1)))


@dataclass(frozen=True)
class _Distance:
    search: NearestNeighbors
    usual: float

    @classmethod
    def among(cls, rows: Statistics) -> "_Distance":
        search = NearestNeighbors(n_neighbors=min(2, len(rows))).fit(rows)
        # Asked without rows, the search leaves out each row itself.
        usual = search.kneighbors(n_neighbors=1)[0].mean() if len(rows) > 1 else 1.0
        return cls(search, max(float(usual), _SMALLEST_DISTANCE))

    def __call__(self, rows: Statistics) -> Statistics:
        finite = np.isfinite(rows).all(axis=1, keepdims=True)
        distances, _ = self.search.kneighbors(np.where(finite, rows, 0.0))
        nearest, next_one = distances[:, :1], distances[:, -1:]
        # A row that was trained on finds itself, up to rounding: what is near it is the next one.
        others = np.where(nearest <= _ROUNDING * next_one, next_one, nearest)
        return np.where(finite, others / self.usual, np.inf)[:, 0]


@dataclass(frozen=True)
class _TwoViews:
    row: _Distance
    model: _Distance

    def __call__(self, statistics: Tensor) -> Tensor:
        row, model = np.split(statistics.double().cpu().numpy(), 2, axis=1)
        return torch.from_numpy(0.5 * (self.row(row) + self.model(model))).to(statistics.device)


_SMALLEST_DISTANCE = 1e-6
_ROUNDING = 1e-3
