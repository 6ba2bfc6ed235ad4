"""The estimator by kernel densities."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike

from offmap.dependence.door import FloatArray, check_variables

# Distances that are held at a time.
HELD = 1_000_000


def kde(x: ArrayLike, y: ArrayLike) -> float:
    r"""The mutual information in nats by kernel densities, each row left out of its own.

    $$\frac1n \sum_i \log \frac{\hat p(x_i, y_i)}{\hat p(x_i)\, \hat p(y_i)}$$

    with Gaussian kernels along each column, as wide as Scott's rule has it, $\sigma n^{-1 / (d + 4)}$.

    Args:
        x: ``(n,)`` or ``(n, d)``.
        y: As many rows.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, noise = rng.normal(size=(2, 2000))
        >>> round(kde(x, x + noise), 1)
        0.3
    """
    return float(kde_pointwise(check_variables(("x", "y"), (x, y))).mean())


def kde_pointwise(variables: Sequence[FloatArray]) -> FloatArray:
    """The log ratio at each row, of two variables or more."""
    return log_density(np.hstack(variables)) - sum(log_density(variable) for variable in variables)


def log_density(rows: FloatArray) -> FloatArray:
    """The logarithm of the kernel density at each row, made of the other rows."""
    count, width = rows.shape
    bandwidth = rows.std(0, ddof=1) * count ** (-1 / (width + 4))
    scaled = torch.from_numpy(rows / bandwidth)
    summed = []
    for start in range(0, count, max(1, HELD // count)):
        chunk = scaled[start : start + max(1, HELD // count)]
        exponents = -0.5 * torch.cdist(chunk, scaled, compute_mode="donot_use_mm_for_euclid_dist").square()
        exponents.diagonal(start).fill_(-math.inf)
        summed.append(exponents.logsumexp(1))
    constant = 0.5 * width * math.log(2 * math.pi) + np.log(bandwidth).sum() + math.log(count - 1)
    return torch.cat(summed).numpy() - constant
