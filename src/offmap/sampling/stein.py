r"""The direction in which Stein variational gradient descent moves particles.

$$\phi(y) = \frac1n \sum_i k(x_i, y) \nabla \log p(x_i) + \nabla_{x_i} k(x_i, y)$$

Reference: Liu and Wang, Stein Variational Gradient Descent, arXiv:1608.04471.
"""

import math

import torch
from torch import Tensor

from offmap.sampling.log_density import LogDensity, evaluate, require_possible

# Why samples may end where the density is zero: its gradient is zero there too, and leads nowhere.
_REMEDY = "use RAS with the box of possible points as support, or a log_density that falls off smoothly"


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """Squared distances between points ``(..., n, d)`` and ``(..., m, d)``, as ``(..., n, m)``."""
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist").square()


def median_bandwidth(distances: Tensor) -> Tensor:
    r"""The kernel bandwidth $h = \mathrm{med}^2 / \log(n + 1)$ of each context, ``(..., 1, 1)``."""
    n = distances.shape[-2]
    median = distances.flatten(-2).median(dim=-1).values[..., None, None]
    return (median / math.log(n + 1)).clamp(min=1e-12)


def svgd_direction(
    x: Tensor, scores: Tensor, y: Tensor | None = None, bandwidth: Tensor | float | None = None
) -> Tensor:
    r"""The direction in which points ``y`` move, given particles ``x`` and the gradient of the log density there.

    The kernel is $k(x, y) = \exp(-\|x - y\|^2 / h)$.

    Args:
        x: Particles, ``(..., n, d)``; each context has its own.
        scores: Gradient of the log density at each particle.
        y: Points to move, ``(..., m, d)``; the particles themselves if None.
        bandwidth: The kernel's $h$; from the median of the squared distances if None.
    """
    y = x if y is None else y
    distances = squared_distances(x, y)
    bandwidth = median_bandwidth(distances) if bandwidth is None else bandwidth
    kernel = (-distances / bandwidth).exp()
    # The sum over i of the gradients of k(x_i, y) in x_i, −2/h Σ k(x_i, y) (x_i − y), without storing all differences.
    repulsion = 2 / bandwidth * (y * kernel.sum(-2).unsqueeze(-1) - kernel.mT @ x)
    return (kernel.mT @ scores + repulsion) / x.shape[-2]


def score(log_density: LogDensity, x: Tensor) -> Tensor:
    """The gradient of a log density at points ``(n, d)``."""
    rows = x.detach().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(log_density(rows).sum(), rows)[0]


@torch.no_grad()
def require_reached(log_density: LogDensity, x: Tensor) -> None:
    """Raises a ``TrainingError`` if any of the final samples ``(n, d)`` lies where the density is zero.

    Example:
        >>> require_reached(lambda x: -x.square().sum(1), torch.zeros(3, 2))
    """
    require_possible(x, evaluate(log_density, x), _REMEDY)
