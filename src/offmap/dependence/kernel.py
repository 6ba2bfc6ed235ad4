"""Kernel density estimator of mutual information."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike

from offmap.dependence.ties import warn_of_ties
from offmap.dependence.validation import FloatArray, check_variables

# Distances that are held in memory at a time.
CHUNK_DISTANCES = 1_000_000


def kde(x: ArrayLike, y: ArrayLike) -> float:
    r"""Estimates the mutual information in nats with leave-one-out kernel densities.

    $$\frac1n \sum_i \log \frac{\hat p(x_i, y_i)}{\hat p(x_i)\, \hat p(y_i)}$$

    Kernels are Gaussian with Scott's bandwidth per column, $\sigma n^{-1 / (d + 4)}$, so scales need not be similar.
    Columns are otherwise taken as they are: they must vary and have no ties. ``mutual_information`` standardises them
    first and drops constant ones; for columns with many ties use ``mixed_ksg``.

    Args:
        x: Array of shape ``(n,)`` or ``(n, d)``.
        y: Array with the same number of rows.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, noise = rng.normal(size=(2, 2000))
        >>> round(kde(x, x + noise), 1)
        0.3
    """
    variables = dict(zip("xy", check_variables(("x", "y"), (x, y)), strict=True))
    for name, rows in variables.items():
        if (rows == rows[0]).all(0).any():
            raise ValueError(f"{name} must vary in each of its columns; drop those that are constant")
    warn_of_ties(variables, "kde", stacklevel=3)
    return float(kde_pointwise([*variables.values()]).mean())


def kde_pointwise(variables: Sequence[FloatArray]) -> FloatArray:
    """Returns the log ratio of kernel densities at each row, for two or more variables."""
    return log_density(np.hstack(variables)) - sum(log_density(variable) for variable in variables)


def log_density(rows: FloatArray) -> FloatArray:
    """Returns the log kernel density at each row, estimated from the other rows."""
    count, width = rows.shape
    bandwidth = rows.std(0, ddof=1) * count ** (-1 / (width + 4))
    scaled = torch.from_numpy(rows / bandwidth)
    summed = []
    for start in range(0, count, max(1, CHUNK_DISTANCES // count)):
        chunk = scaled[start : start + max(1, CHUNK_DISTANCES // count)]
        exponents = -0.5 * torch.cdist(chunk, scaled, compute_mode="donot_use_mm_for_euclid_dist").square()
        exponents.diagonal(start).fill_(-math.inf)
        summed.append(exponents.logsumexp(1))
    constant = 0.5 * width * math.log(2 * math.pi) + np.log(bandwidth).sum() + math.log(count - 1)
    return torch.cat(summed).numpy() - constant
