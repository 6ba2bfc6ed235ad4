"""Measures of how well samples match the density they should come from."""

import math

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from offmap_bench.densities import Density

# Added to the probability of each bin, so that an empty bin does not make the divergence infinite.
_FLOOR = 1e-8
# Bandwidths of the kernel of ``mmd``, in units of the median distance.
_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)


def symmetric_kl(samples: ArrayLike, density: Density) -> float:
    r"""$\mathrm{KL}(p \| q) + \mathrm{KL}(q \| p)$ between the density $p$ and a histogram $q$ of ``samples``.

    Samples outside the window count in the total but in no bin. True samples do not reach zero: with few samples per
    bin, many bins stay empty. Compare with the value of as many true samples.

    Example:
        >>> from offmap_bench.densities import ring_of_gaussians
        >>> density = ring_of_gaussians()
        >>> round(symmetric_kl(density.draw(20_480), density), 1)
        0.7
    """
    points = np.asarray(samples)
    window = [(density.low, density.high)] * density.dim
    counts, _ = np.histogramdd(points, bins=density.bins, range=window)
    q, p = (_floored(part) for part in (counts / len(points), density.masses().numpy()))
    return float(((p - q) * np.log(p / q)).sum())


def _floored(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    raised = shares + _FLOOR
    return raised / raised.sum()


def mode_shares(samples: ArrayLike, density: Density, within: float = math.inf) -> NDArray[np.float64]:
    """The share of the samples nearest to each mode and at most ``within`` standard deviations away from it."""
    modes, sd = _require_modes(density)
    distance, nearest = torch.cdist(torch.tensor(np.asarray(samples)).to(modes), modes).min(dim=1)
    close = nearest[distance <= within * sd]
    return np.bincount(close.numpy(), minlength=len(modes)) / len(nearest)


def modes_found(samples: ArrayLike, density: Density) -> int:
    """Number of modes with at least a tenth of their share of the samples within three standard deviations."""
    shares = mode_shares(samples, density, within=3)
    return int((shares >= 0.1 * _weights(density)).sum())


def weight_error(samples: ArrayLike, density: Density) -> float:
    """Total variation distance between the shares of the modes and their weights; 0 is best, 1 is worst."""
    return float(np.abs(mode_shares(samples, density) - _weights(density)).sum() / 2)


def _weights(density: Density) -> NDArray[np.float64]:
    modes, _ = _require_modes(density)
    weights = torch.full((len(modes),), 1 / len(modes)) if density.weights is None else density.weights
    return weights.double().numpy()


def _require_modes(density: Density) -> tuple[Tensor, float]:
    if density.modes is None or density.mode_sd is None:
        raise ValueError("density must be a mixture of Gaussians; it has no modes")
    return density.modes, density.mode_sd


def mmd(samples: ArrayLike, others: ArrayLike) -> float:
    """The squared maximum mean discrepancy between two sets of points; 0 on average if they have the same distribution.

    The kernel is the mean of five Gaussians, with 1/4, 1/2, 1, 2 and 4 times the median distance in the second set.
    """
    x, y = (torch.tensor(np.asarray(points)).double() for points in (samples, others))
    median = torch.nn.functional.pdist(y[:1000]).median()

    def kernel(a: Tensor, b: Tensor) -> Tensor:
        squares = torch.cdist(a, b).square()
        return torch.stack([(-squares / (2 * (width * median) ** 2)).exp() for width in _WIDTHS]).mean(0)

    within = [(k.sum() - k.trace()) / (len(k) * (len(k) - 1)) for k in (kernel(x, x), kernel(y, y))]
    return float(within[0] + within[1] - 2 * kernel(x, y).mean())


def cdf_distances(samples: ArrayLike, density: Density) -> tuple[float, float]:
    """The Kolmogorov–Smirnov and the first Wasserstein distance between one-dimensional samples and their density."""
    ordered = np.sort(np.asarray(samples).reshape(-1))
    masses = density.masses(finer=10).numpy()
    edges = np.linspace(density.low, density.high, len(masses) + 1)
    true = np.concatenate([[0.0], masses.cumsum()])
    at_samples = np.interp(ordered, edges, true)
    # The true quantile at the middle of each sample's rank.
    quantiles = np.interp((np.arange(len(ordered)) + 0.5) / len(ordered), true, edges)
    return ks_distance(at_samples), float(np.abs(ordered - quantiles).mean())


def ks_distance(at_samples: NDArray[np.float64]) -> float:
    """The Kolmogorov–Smirnov distance, given the true distribution function at the samples in ascending order."""
    ranks = np.arange(len(at_samples) + 1) / len(at_samples)
    return float(np.maximum(at_samples - ranks[:-1], ranks[1:] - at_samples).max())
