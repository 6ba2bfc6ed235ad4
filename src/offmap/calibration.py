"""Thresholds and p-values that mean what they say, from rows that training never saw.

All functions speak of *novelty*: higher is more novel. They need only that held-out and future normal rows are
exchangeable; nothing is assumed about the shape of the scores.
"""

import warnings
from math import floor

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Indices = NDArray[np.intp]


class CalibrationWarning(UserWarning):
    """Too few held-out rows for the false-alarm rate that was asked for."""


def p_values(calibration: FloatArray, novelty: FloatArray) -> FloatArray:
    r"""Conformal p-values: the share of held-out normal rows at least as novel as each row.

    $$p(s) = \frac{1 + \#\{i : c_i \ge s\}}{n + 1}$$

    A normal row gets a p-value of at most $\alpha$ with a probability of at most $\alpha$.

    Args:
        calibration: Novelty of the held-out rows, in ascending order.
        novelty: Novelty of the rows in question.

    Reference: Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005, section 2.

    Example:
        >>> p_values(np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 9.0]))
        array([1.  , 0.75, 0.25])
    """
    at_least = len(calibration) - np.searchsorted(calibration, novelty, side="left")
    return np.asarray((1.0 + at_least) / (len(calibration) + 1.0), dtype=np.float64)


def threshold(calibration: FloatArray, alpha: float) -> float:
    r"""The novelty above which a row is flagged, so that normal rows are flagged at a rate of at most ``alpha``.

    It is the held-out value of rank $\lceil (n + 1)(1 - \alpha) \rceil$: a row lies above it just when its conformal
    p-value is at most ``alpha``. With fewer than $1/\alpha - 1$ rows no threshold can promise that; the largest
    held-out value is used, which promises $1 / (n + 1)$, with a ``CalibrationWarning``.

    Args:
        calibration: Novelty of the held-out rows, in ascending order.
        alpha: False-alarm rate.

    Example:
        >>> threshold(np.arange(1.0, 100.0), alpha=0.05)
        95.0
    """
    n = len(calibration)
    # The small term undoes the rounding of products such as 20 * 0.05, which must count as 1.
    allowed_above = floor((n + 1) * alpha + 1e-9) - 1
    if allowed_above < 0:
        warnings.warn(
            f"{n} calibration rows cannot promise a false-alarm rate of {alpha:g}; the rate is up to {1 / (n + 1):.2g}",
            CalibrationWarning,
            stacklevel=4,
        )
        allowed_above = 0
    return float(calibration[n - 1 - allowed_above])


def hold_out(groups: NDArray[np.int64], fraction: float, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Splits rows into training and held-out ones, each group (class) in proportion.

    At least one row is held out, and the first row drawn of each group always stays in training, so that no class
    is lost to calibration.

    Args:
        groups: The group of each row.
        fraction: Share of the rows to hold out.
        rng: Decides which.

    Returns:
        The indices of the training rows and of the held-out rows, both ascending.
    """
    shuffled = rng.permutation(len(groups))
    by_group = shuffled[np.argsort(groups[shuffled], kind="stable")]
    first_of_group = np.diff(groups[by_group], prepend=groups.min() - 1) != 0
    free = by_group[~first_of_group]
    count = min(max(1, round(fraction * len(groups))), len(free))
    held_out = np.sort(free[(np.arange(count) * len(free)) // max(count, 1)])
    return np.setdiff1d(np.arange(len(groups)), held_out), held_out
