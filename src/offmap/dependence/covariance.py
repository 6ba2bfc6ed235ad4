"""Estimators by a Gaussian: of the variables, or of their ranks."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import digamma, ndtri
from scipy.stats import rankdata

from offmap.dependence.door import FloatArray, check_variables


def gaussian(x: ArrayLike, y: ArrayLike) -> float:
    r"""The mutual information in nats that two jointly Gaussian variables of these covariances share.

    $$\frac12 \log \frac{\det \Sigma_x \det \Sigma_y}{\det \Sigma} = -\frac12 \sum_i \log(1 - \rho_i^2)$$

    with $\rho_i$ the canonical correlations. The logarithms of the determinants are freed of the bias that they have
    for Gaussian rows. The truth is higher if each variable is Gaussian and the two together are not.

    Args:
        x: ``(n,)`` or ``(n, d)``.
        y: As many rows, which must be more than the columns of both.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, noise = rng.normal(size=(2, 2000))
        >>> round(gaussian(x, x + noise), 1)
        0.3
    """
    return float(gaussian_pointwise(check_variables(("x", "y"), (x, y))).mean())


def gaussian_copula(x: ArrayLike, y: ArrayLike) -> float:
    r"""The mutual information in nats under a Gaussian copula: each column may have any distribution.

    Stretching a column leaves the mutual information as it is, so that columns are first mapped to the quantiles
    $\Phi^{-1}(\mathrm{rank} / (n + 1))$ of a Gaussian.

    Args:
        x: ``(n,)`` or ``(n, d)``.
        y: As many rows, which must be more than the columns of both.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, noise = rng.normal(size=(2, 2000))
        >>> round(gaussian_copula(np.exp(x), (x + noise) ** 3), 1)
        0.3
    """
    return float(gaussian_copula_pointwise(check_variables(("x", "y"), (x, y))).mean())


def gaussian_pointwise(variables: Sequence[FloatArray]) -> FloatArray:
    """The log ratio of Gaussian densities at each row, of two variables or more."""
    together = _log_density(np.hstack(variables))
    return together - sum(_log_density(variable) for variable in variables)


def gaussian_copula_pointwise(variables: Sequence[FloatArray]) -> FloatArray:
    """The same on the Gaussian quantiles of the ranks."""
    return gaussian_pointwise([normal_scores(variable) for variable in variables])


def normal_scores(rows: FloatArray) -> FloatArray:
    """Each value as the quantile of a standard Gaussian that its rank in the column has.

    Example:
        >>> normal_scores(np.array([[10.0], [1000.0], [30.0]])).ravel().round(2)
        array([-0.67,  0.67,  0.  ])
    """
    return ndtri(rankdata(rows, axis=0) / (len(rows) + 1))


def log_determinant_bias(rows: int, width: int) -> float:
    r"""How far $\log\det$ of the covariance (with divisor $n$) of Gaussian rows is from the truth on average."""
    freedom = np.arange(rows - 1, rows - 1 - width, -1)
    return float((digamma(freedom / 2) + math.log(2 / rows)).sum())


def _log_density(rows: FloatArray) -> FloatArray:
    """At each row; its mean is minus the entropy, without the terms that cancel in a ratio."""
    count, width = rows.shape
    centred = rows - rows.mean(0)
    try:
        root = cholesky(centred.T @ centred / count, lower=True)
    except LinAlgError:
        root = np.zeros((width, width))
    if count <= width or np.diag(root).min() <= 1e-7 * np.abs(centred).max():
        raise ValueError(
            f"a Gaussian needs columns of which none follows from the others, and more rows than columns; "
            f"got {count} rows of {width} columns"
        )
    white = solve_triangular(root, centred.T, lower=True)
    log_determinant = 2 * np.log(np.diag(root)).sum() - log_determinant_bias(count, width)
    return -0.5 * ((white**2).sum(0) + log_determinant)
