r"""Stein variational gradient descent: the direction in which particles flow to a density, and plain particles that do.

$$\phi(y) = \frac1n \sum_i k(x_i, y) \nabla \log p(x_i) + \nabla_{x_i} k(x_i, y)$$

Reference: Liu and Wang, Stein Variational Gradient Descent, arXiv:1608.04471.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from offmap import parameters
from offmap.parameters import Count, Positive
from offmap.progress import bar
from offmap.random_state import draw_seed, local_seed
from offmap.sampling.targets import LogDensity, require_usable


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """Between each of ``(..., n, d)`` and each of ``(..., m, d)``, as ``(..., n, m)``."""
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist").square()


def median_bandwidth(distances: Tensor) -> Tensor:
    r"""The bandwidth $h = \mathrm{med}^2 / \log(n + 1)$ of each context, ``(..., 1, 1)``."""
    n = distances.shape[-2]
    median = distances.flatten(-2).median(dim=-1).values[..., None, None]
    return (median / math.log(n + 1)).clamp(min=1e-12)


def rbf_kernel(x: Tensor, y: Tensor, bandwidth: Tensor | float) -> Tensor:
    r"""$k(x, y) = \exp(-\|x - y\|^2 / h)$ for each pair, ``(..., n, m)``."""
    return (-squared_distances(x, y) / bandwidth).exp()


def svgd_direction(
    x: Tensor, score: Tensor, y: Tensor | None = None, bandwidth: Tensor | float | None = None
) -> Tensor:
    """The direction that particles ``y`` flow in, given particles ``x`` and the slopes of the log density there.

    Args:
        x: Particles, ``(..., n, d)``, those of each context by themselves.
        score: Slope of the log density at each of them.
        y: Where the direction is wanted, ``(..., m, d)``; at ``x`` if absent.
        bandwidth: Of the kernel; by the median of the squared distances if absent.
    """
    y = x if y is None else y
    distances = squared_distances(x, y)
    bandwidth = median_bandwidth(distances) if bandwidth is None else bandwidth
    kernel = (-distances / bandwidth).exp()
    # The sum over i of the slopes of k(x_i, y) in x_i, −2/h Σ k(x_i, y) (x_i − y), without a tensor of all differences.
    repulsion = 2 / bandwidth * (y * kernel.sum(-2).unsqueeze(-1) - kernel.mT @ x)
    return (kernel.mT @ score + repulsion) / x.shape[-2]


@dataclass(kw_only=True, eq=False, repr=False)
class SVGD(BaseEstimator):
    """Particles that flow to a density known up to a constant; more different samples than particles are not to be had.

    Args:
        log_density: Maps points ``(n, d)``, a torch tensor, to the log density up to a constant, ``(n,)``.
        dim: Dimensions of a particle.
        particles: How many.
        scale: Spread of the particles at the start.
        steps: Steps of the flow.
        lr: Step size, of Adagrad.
        random_state: Seed; with one, the same call gives the same particles.
        device: Where torch works, such as "cpu" or "cuda".

    Example:
        >>> sampler = SVGD(log_density=lambda x: -((x - 3.0) ** 2).sum(1) / 2, dim=1, steps=200, lr=0.5, particles=100,
        ...                random_state=0).fit()
        >>> round(float(sampler.particles_.mean()))
        3
    """

    log_density: LogDensity | None = None
    dim: Count = 2
    particles: Count = 256
    scale: Positive = 1.0
    steps: Count = 1000
    lr: Positive = 0.1
    random_state: int | None = None
    device: str = "cpu"

    def fit(self) -> Self:
        """Lets the particles flow."""
        parameters.check(self)
        if self.log_density is None:
            raise ValueError("log_density must be given before fit")
        with local_seed(draw_seed(self.random_state)):
            x = self.scale * torch.randn(self.particles, self.dim, device=self.device)
            require_usable(self.log_density, x)
            self.particles_ = self._flowed(x, self.log_density).cpu().numpy()
        return self

    def sample(self, n: int, random_state: int | None = None) -> NDArray[np.float32]:
        """``n`` of the particles, some of them more than once if there are fewer."""
        check_is_fitted(self, "particles_")
        rng = np.random.default_rng(random_state)
        whole, rest = divmod(n, len(self.particles_))
        rows = [*[np.arange(len(self.particles_))] * whole, rng.permutation(len(self.particles_))[:rest]]
        return self.particles_[np.concatenate(rows)]

    def _flowed(self, x: Tensor, log_density: LogDensity) -> Tensor:
        squares = torch.zeros_like(x)
        with bar("SVGD", total=self.steps) as shown:
            for _ in range(self.steps):
                direction = svgd_direction(x, score_of(log_density, x))
                squares += direction.square()
                x = x + self.lr * direction / (squares.sqrt() + 1e-6)
                shown.advance()
        return x


def score_of(log_density: LogDensity, x: Tensor) -> Tensor:
    """The slope of a log density at points ``(n, d)``."""
    rows = x.detach().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(log_density(rows).sum(), rows)[0]
