"""Gaussian estimators: from the covariance of the variables, or from the covariance of their ranks."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import digamma, ndtri
from scipy.stats import rankdata

from offmap.dependence.ties import warn_of_ties
from offmap.dependence.validation import FloatArray, check_variables

# Share of its length that a redundant column may keep when the columns before it are projected out.
_REDUNDANT = 1e-6


def gaussian(x: ArrayLike, y: ArrayLike) -> float:
    r"""Estimates the mutual information in nats as if both variables were jointly Gaussian.

    $$\frac12 \log \frac{\det \Sigma_x \det \Sigma_y}{\det \Sigma} = -\frac12 \sum_i \log(1 - \rho_i^2)$$

    with $\rho_i$ the canonical correlations. The log determinants are corrected for their bias on Gaussian rows. If
    each variable is Gaussian but the two together are not, the true value is higher.

    Args:
        x: Array of shape ``(n,)`` or ``(n, d)``.
        y: Array with the same number of rows. There must be more rows than columns in both together.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, noise = rng.normal(size=(2, 2000))
        >>> round(gaussian(x, x + noise), 1)
        0.3
    """
    variables = check_variables(("x", "y"), (x, y))
    warn_of_ties(dict(zip("xy", variables, strict=True)), "gaussian", stacklevel=3)
    return float(gaussian_pointwise(variables).mean())


def gaussian_copula(x: ArrayLike, y: ArrayLike) -> float:
    r"""Estimates the mutual information in nats under a Gaussian copula; each column may have any distribution.

    Monotone maps of single columns do not change mutual information, so each column is first mapped to normal scores
    $\Phi^{-1}(\mathrm{rank} / (n + 1))$.

    Args:
        x: Array of shape ``(n,)`` or ``(n, d)``.
        y: Array with the same number of rows. There must be more rows than columns in both together.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, noise = rng.normal(size=(2, 2000))
        >>> round(gaussian_copula(np.exp(x), (x + noise) ** 3), 1)
        0.3
    """
    variables = check_variables(("x", "y"), (x, y))
    warn_of_ties(dict(zip("xy", variables, strict=True)), "gaussian_copula", stacklevel=3)
    return float(gaussian_copula_pointwise(variables).mean())


def gaussian_pointwise(variables: Sequence[FloatArray]) -> FloatArray:
    """Returns the log ratio of Gaussian densities at each row, for two or more variables."""
    together = _log_density(np.hstack(variables))
    return together - sum(_log_density(variable) for variable in variables)


def gaussian_copula_pointwise(variables: Sequence[FloatArray]) -> FloatArray:
    """Returns the log ratio of Gaussian densities at the normal scores of each row."""
    return gaussian_pointwise([normal_scores(variable) for variable in variables])


def normal_scores(rows: FloatArray) -> FloatArray:
    """Maps each value to the standard normal quantile of its rank within the column.

    Example:
        >>> normal_scores(np.array([[10.0], [1000.0], [30.0]])).ravel().round(2)
        array([-0.67,  0.67,  0.  ])
    """
    return ndtri(rankdata(rows, axis=0) / (len(rows) + 1))


def redundant_columns(rows: FloatArray) -> list[int]:
    """Returns the positions of the columns that are linear combinations of columns before them.

    Example:
        >>> x, y = np.random.default_rng(0).normal(size=(2, 50))
        >>> redundant_columns(np.column_stack([x, 3 * x + 1, y, x - y]))
        [1, 3]
    """
    centred = rows - rows.mean(0)
    basis = np.empty_like(centred, order="F")
    redundant: list[int] = []
    for place, column in enumerate(centred.T):
        found = basis[:, : place - len(redundant)]
        # Twice, because rounding leaves a part of the basis after one projection.
        rest = column - found @ (found.T @ column)
        rest -= found @ (found.T @ rest)
        length = np.linalg.norm(rest)
        if length <= _REDUNDANT * np.linalg.norm(column):
            redundant.append(place)
        else:
            basis[:, place - len(redundant)] = rest / length
    return redundant


def log_determinant_bias(rows: int, width: int) -> float:
    r"""Returns the bias of $\log\det$ of the covariance (divisor $n$) of Gaussian rows."""
    freedom = np.arange(rows - 1, rows - 1 - width, -1)
    return float((digamma(freedom / 2) + math.log(2 / rows)).sum())


def _log_density(rows: FloatArray) -> FloatArray:
    """Log density at each row, without the terms that cancel in a ratio."""
    count, width = rows.shape
    centred = rows - rows.mean(0)
    try:
        root = cholesky(centred.T @ centred / count, lower=True)
    except LinAlgError:
        root = np.zeros((width, width))
    # Compared column by column, so that the scales of the columns do not matter.
    if count <= width or (np.diag(root) <= 1e-7 * np.abs(centred).max(0)).any():
        raise ValueError(
            f"a Gaussian estimate needs more rows than columns, and no column that is a linear combination of others; "
            f"got {count} rows and {width} columns. Drop redundant columns, or use 'ksg'"
        )
    white = solve_triangular(root, centred.T, lower=True)
    log_determinant = 2 * np.log(np.diag(root)).sum() - log_determinant_bias(count, width)
    return -0.5 * ((white**2).sum(0) + log_determinant)
