"""Conformal p-values and thresholds from the novelty of held-out normal rows.

Held-out and future normal rows must be exchangeable; nothing is assumed about the distribution of the scores.
"""

import numpy as np

from offmap.arrays import FloatArray
from offmap.calibration.conditional import rows_above, rows_needed
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


def random_p_values(calibration: FloatArray, novelty: FloatArray, rng: np.random.Generator) -> FloatArray:
    r"""Conformal p-values with ties broken at random, which are uniform for normal rows also if scores are discrete.

    $$p(s) = \frac{\#\{i : c_i > s\} + U (1 + \#\{i : c_i = s\})}{n + 1}, \qquad U \sim \mathrm{Uniform}(0, 1)$$

    Args:
        calibration: Novelty of the held-out rows, in ascending order.
        novelty: Novelty of the rows to assess.
        rng: Breaks the ties.

    Example:
        >>> p = random_p_values(np.zeros(9), np.zeros(1000), np.random.default_rng(0))
        >>> round(float(np.mean(p <= 0.1)), 1)
        0.1
    """
    above = len(calibration) - np.searchsorted(calibration, novelty, side="right")
    ties = len(calibration) - np.searchsorted(calibration, novelty, side="left") - above
    return np.asarray((above + rng.uniform(size=len(novelty)) * (1 + ties)) / (len(calibration) + 1))


def threshold(calibration: FloatArray, alpha: float, confidence: float | None = None) -> float:
    r"""The novelty above which a row is flagged, so that normal rows are flagged at a rate of at most ``alpha``.

    It is the held-out value of rank $\lceil (n + 1)(1 - \alpha) \rceil$: a row lies above it exactly when its conformal
    p-value is at most ``alpha``. With a ``confidence`` the rank is higher, so that the rate of this very model is at
    most ``alpha`` with that confidence. With fewer rows than ``rows_needed`` says, no threshold can promise ``alpha``.
    The largest held-out value is used then, and a ``CalibrationWarning`` says what it keeps.

    Args:
        calibration: Novelty of the held-out rows, in ascending order.
        alpha: False-alarm rate.
        confidence: Probability that the rate of this very model is at most ``alpha``.

    Example:
        >>> threshold(np.arange(1.0, 100.0), alpha=0.05), threshold(np.arange(1.0, 100.0), alpha=0.05, confidence=0.9)
        (95.0, 98.0)
    """
    n = len(calibration)
    allowed = rows_above(n, alpha, confidence)
    if allowed < 0:
        warn_caller(f"{n} calibration rows {_shortfall(n, alpha, confidence)}", CalibrationWarning)
    return float(calibration[n - 1 - max(allowed, 0)])


def attainable_rate(n: int, alpha: float, confidence: float | None = None) -> float:
    """The rate that the threshold of ``n`` held-out rows keeps: ``alpha``, or a larger one if the rows are too few.

    Example:
        >>> attainable_rate(199, 0.05), attainable_rate(9, 0.05)
        (0.05, 0.1)
    """
    if confidence is None:
        return max(alpha, 1 / (n + 1))
    return float(max(alpha, 1 - (1 - confidence) ** (1 / n)))


def _shortfall(n: int, alpha: float, confidence: float | None) -> str:
    sure = "" if confidence is None else f" with confidence {confidence:g}"
    return (
        f"cannot promise a false-alarm rate of {alpha:g}{sure}; the rate is up to "
        f"{attainable_rate(n, alpha, confidence):.2g}; give more rows, a larger alpha or a larger calibration share: "
        f"{rows_needed(alpha, confidence)} are needed"
    )
