"""The distance to the nearest training row, in the features and in the autoencoder's output."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from offmap.density.neighbor_distance import NeighborDistance
from offmap.density.vae.scores.score import Networks, NoveltyFunction, Requirement, Score, Statistics


class Nearest(Score):
    r"""The mean of two distances to the nearest training row: in the features, and in the autoencoder's output.

    The first space is the row itself, $v_1(x) = x$. The second is the standardised residual together with the latent
    mean, $v_2(x) = \left(\frac{x - \hat x}{\sigma}, \mu(x)\right)$. With $R$ the training rows,

    $$\frac12 \sum_{i=1}^2 \frac{\min_{r \in R} \|v_i(x) - v_i(r)\|}{m_i},$$

    where $m_i$ is the mean distance from a training row to the nearest other one. The first distance detects rows that
    are far away or between two clusters; the second, rows that break the dependence between features. Cost: one
    forward pass, and a search among at most 10,000 rows. Fails: on large images, where a shift by one pixel is farther
    than another picture. ``NearestNeighborDetector`` uses the first distance alone and trains no network.
    """

    name: ClassVar[str] = "nearest"
    requires: ClassVar[frozenset[Requirement]] = frozenset({"training"})

    def statistics(self, networks: Networks, X: Tensor) -> Tensor:
        """Both vectors side by side, the first padded with zeros to the width of the second."""
        network = networks.network
        expected, posterior = network.reconstruct(X)
        residual = (X - expected) / network.likelihood.scale
        row = pad(X.flatten(1), (0, posterior.mean.shape[1]))
        return torch.cat([row, residual.flatten(1), posterior.mean], dim=1)

    def novelty_function(self, reference: Statistics) -> NoveltyFunction:
        """The mean of the two distances to the nearest row of ``reference``."""
        return _MeanDistance(*(NeighborDistance.fit(half) for half in np.split(reference, 2, axis=1)))


@dataclass(frozen=True)
class _MeanDistance:
    row: NeighborDistance
    output: NeighborDistance

    def __call__(self, statistics: Tensor) -> Tensor:
        row, output = np.split(statistics.double().cpu().numpy(), 2, axis=1)
        return torch.from_numpy(0.5 * (self.row(row) + self.output(output))).to(statistics.device)
