"""Densities drawn at random, on which no setting of a sampler can have been chosen."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from scipy.special import betaln
from torch import Tensor

from offmap_bench.densities import Density, mixture
from offmap_bench.sample_quality import ks_distance

# Keeps logarithms finite on the boundary of a box.
_EDGE = 1e-6


@dataclass(frozen=True)
class BetaMixture:
    """A mixture of products of Beta densities on a box.

    Args:
        low: Lower bounds of the box, ``(d,)``.
        width: Its widths.
        a: First parameters of the Betas, ``(k, d)``.
        b: Second parameters.
        weights: Weights of the mixture, ``(k,)``.
    """

    low: NDArray[np.float64]
    width: NDArray[np.float64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    weights: NDArray[np.float64]

    @property
    def dim(self) -> int:
        """Dimensions of the box."""
        return len(self.low)

    @property
    def support(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The bounds, as ``RAS`` takes them."""
        return tuple(self.low), tuple(self.low + self.width)

    def log_u(self, x: Tensor) -> Tensor:
        """The log density at points ``(n, d)`` of the box, up to a constant."""
        low, width, a, b = (torch.as_tensor(part).to(x) for part in (self.low, self.width, self.a, self.b))
        t = ((x - low) / width).clamp(_EDGE, 1 - _EDGE).unsqueeze(1)
        offsets = torch.as_tensor(np.log(self.weights) - betaln(self.a, self.b).sum(1)).to(x)
        return torch.logsumexp(offsets + ((a - 1) * t.log() + (b - 1) * torch.log1p(-t)).sum(-1), dim=1)

    def ks(self, samples: NDArray[np.floating]) -> float:
        """The largest Kolmogorov–Smirnov distance between samples ``(n, d)`` and the marginals."""
        t = np.sort((samples.astype(np.float64) - self.low) / self.width, axis=0)
        return max(ks_distance(self._cdf(t[:, axis], axis)) for axis in range(self.dim))

    def _cdf(self, t: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        return np.asarray(stats.beta.cdf(t[:, None], self.a[:, axis], self.b[:, axis]) @ self.weights)


def random_box(seed: int, parts: int, dim: int = 1) -> BetaMixture:
    """A mixture of ``parts`` Betas, each with both parameters above 1, on a box anywhere and of any width.

    Example:
        >>> box = random_box(seed=0, parts=2)
        >>> bool(box.support[0] < box.support[1]), bool((box.a > 1).all())
        (True, True)
    """
    rng = np.random.default_rng(seed)
    low, width = rng.uniform(-10, 10, dim), np.exp(rng.uniform(np.log(0.1), np.log(100), dim))
    mean, strength = rng.uniform(0.1, 0.9, (parts, dim)), np.exp(rng.uniform(np.log(2), np.log(60), (parts, dim)))
    return BetaMixture(low, width, 1 + mean * strength, 1 + (1 - mean) * strength, rng.dirichlet([3.0] * parts))


def random_ring(seed: int, count: int = 6, radius: float = 3.0, sd: float = 0.3) -> Density:
    """Gaussians on a circle, turned at random and with random weights."""
    rng = np.random.default_rng(seed)
    weights = torch.tensor(rng.dirichlet([3.0] * count), dtype=torch.float32)
    angles = 2 * math.pi * torch.arange(count) / count + float(rng.uniform(0, 2 * math.pi))
    modes = radius * torch.stack([angles.cos(), angles.sin()], dim=1)
    return mixture(modes, sd, -4.0, 4.0, 0.04, weights)
