"""Conformal p-values and thresholds from the novelty of held-out normal rows.

Held-out and future normal rows must be exchangeable; nothing is assumed about the distribution of the scores.
"""

from math import floor

import numpy as np

from offmap.arrays import FloatArray
from offmap.errors import warn_caller


class CalibrationWarning(UserWarning):
    """Too few held-out rows for the requested false-alarm rate."""


def p_values(calibration: FloatArray, novelty: FloatArray) -> FloatArray:
    r"""Conformal p-values: the share of held-out normal rows at least as novel as each row.

    $$p(s) = \frac{1 + \#\{i : c_i \ge s\}}{n + 1}$$

    A normal row gets a p-value of at most $\alpha$ with a probability of at most $\alpha$.

    Args:
        calibration: Novelty of the held-out rows, in ascending order.
        novelty: Novelty of the rows to assess.

    Reference: Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005, section 2.

    Example:
        >>> p_values(np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 9.0]))
        array([1.  , 0.75, 0.25])
    """
    at_least = len(calibration) - np.searchsorted(calibration, novelty, side="left")
    return np.asarray((1.0 + at_least) / (len(calibration) + 1.0), dtype=np.float64)


def threshold(calibration: FloatArray, alpha: float) -> float:
    r"""The novelty above which a row is flagged, so that normal rows are flagged at a rate of at most ``alpha``.

    It is the held-out value of rank $\lceil (n + 1)(1 - \alpha) \rceil$: a row lies above it exactly when its conformal
    p-value is at most ``alpha``. With fewer than $1/\alpha - 1$ rows no threshold can promise ``alpha``. The largest
    held-out value is used then, which promises $1 / (n + 1)$, and a ``CalibrationWarning`` says so.

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
        warn_caller(
            f"{n} calibration rows cannot promise a false-alarm rate of {alpha:g}; the rate is up to "
            f"{1 / (n + 1):.2g}; give more rows, a larger alpha or a larger calibration share",
            CalibrationWarning,
        )
        allowed_above = 0
    return float(calibration[n - 1 - allowed_above])
