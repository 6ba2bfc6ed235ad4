"""Gaussians of one shrunk covariance, and the squared Mahalanobis distance to the nearest of their means."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.covariance import ledoit_wolf_shrinkage
from torch import Tensor

from offmap.class_statistics import class_means
from offmap.nets.steady import steady_product

Rows = NDArray[np.float64]


@dataclass(frozen=True)
class Gaussians:
    r"""Gaussians with means $\mu_c$ and one covariance $\Sigma$, shrunk towards a multiple of the identity:

    $$\Sigma = (1 - s) S + s \frac{\operatorname{tr} S}{d} I.$$

    Args:
        means: One row per Gaussian.
        factor: $F$ with $F F^\top = \Sigma^{-1}$.

    Reference: Ledoit and Wolf, A Well-Conditioned Estimator for Large-Dimensional Covariance Matrices, 2004.

    Example:
        >>> rows = torch.tensor([[0.0], [2.0], [0.0], [2.0]], dtype=torch.float64)
        >>> Gaussians.fit(rows).distance(torch.tensor([[1.0], [4.0]]))
        tensor([0., 9.], dtype=torch.float64)
    """

    means: Tensor
    factor: Tensor

    @classmethod
    def fit(cls, rows: Tensor, codes: Tensor | None = None, shrinkage: float | None = None) -> Self:
        """Estimates the mean of each class and the covariance within classes; one Gaussian if there are no codes."""
        codes = torch.zeros(len(rows), dtype=torch.int64) if codes is None else codes
        means = class_means(rows.double(), codes)
        residuals = (rows.double() - means[codes]).numpy()
        covariance = residuals.T @ residuals / len(residuals)
        share = shrinkage_of(residuals) if shrinkage is None else shrinkage
        return cls.of(means, covariance, share)

    @classmethod
    def of(cls, means: Tensor, covariance: Rows, shrinkage: float) -> Self:
        """The Gaussians of means and a covariance that are known already."""
        return cls(means, torch.from_numpy(_inverse_root(_shrunk(covariance, shrinkage))))

    def distance(self, rows: Tensor) -> Tensor:
        """The squared Mahalanobis distance of each row to the nearest mean."""
        centre = self.means.mean(dim=0)
        places = steady_product(rows.double() - centre, self.factor.T)
        if len(self.means) == 1:
            return places.square().sum(dim=1)
        means = (self.means - centre) @ self.factor
        # Expanded into products, which are fast; centred and in double precision, little cancels.
        to_each = means.square().sum(dim=1) - 2 * steady_product(places, means)
        return (places.square().sum(dim=1) + to_each.amin(dim=1)).clamp(min=0)

    @property
    def precision(self) -> Tensor:
        """The inverse of the covariance."""
        return self.factor @ self.factor.T


def shrinkage_of(residuals: Rows) -> float:
    """Ledoit and Wolf's share $s$ for centred rows; 1 if there is no spread at all."""
    if not residuals.any():
        return 1.0
    return float(ledoit_wolf_shrinkage(residuals, assume_centered=True))


def _shrunk(covariance: Rows, share: float) -> Rows:
    size = len(covariance)
    return (1 - share) * covariance + share * np.trace(covariance) / size * np.eye(size)


def _inverse_root(covariance: Rows) -> Rows:
    """A factor of the inverse; directions without any spread get the smallest variance that is told from rounding."""
    values, vectors = np.linalg.eigh(covariance)
    floor = max(_RELATIVE_FLOOR * float(values.max()), _SMALLEST_VARIANCE)
    return vectors / np.sqrt(np.maximum(values, floor))


_RELATIVE_FLOOR = 1e-10
_SMALLEST_VARIANCE = 1e-12
