r"""Novelty on one scale from several models, each of which has held-out rows of its own.

The conformal p-value of CV+ counts, for every model, the held-out rows of its fold that are at least as novel to it as
the row is. The surprise is $-\log$ of that p-value, with the steps between two counts filled in: it orders rows as the
p-value does, tells rows apart that share one, and keeps growing beyond all held-out rows.
"""

from collections.abc import Sequence

import numpy as np

from offmap.arrays import FloatArray

_EDGE = 1e-9


def surprise(calibrations: Sequence[FloatArray], novelties: Sequence[FloatArray]) -> FloatArray:
    r"""$-\log$ of the CV+ p-value of each row, with its steps filled in.

    $$-\log \frac{r + \sum_i 1[c_{k(i)i} \ge s_{k(i)}]}{n + 1}, \qquad 0 < r < 1$$

    Within a step, $r$ falls as the novelty grows to any of the models.

    Args:
        calibrations: For each model the novelty of its held-out rows, in ascending order.
        novelties: For each model the novelty of the rows to assess.

    Reference: Barber, Candès, Ramdas and Tibshirani, Predictive Inference with the Jackknife+, Annals of Statistics
        2021, section 3; as p-values: Hennhöfer and Preisach, Leave-One-Out-, Bootstrap- and Cross-Conformal Anomaly
        Detectors, 2024.

    Example:
        >>> folds = [np.array([1.0, 3.0]), np.array([2.0, 4.0])]
        >>> rows = [np.array([0.0, 2.5, 9.0]), np.array([0.0, 3.5, 9.0])]
        >>> np.ceil(5 * np.exp(-surprise(folds, rows)))
        array([5., 3., 1.])
    """
    n = sum(len(calibration) for calibration in calibrations)
    tails = [_tail(calibration, novelty) for calibration, novelty in zip(calibrations, novelties, strict=True)]
    counted = np.sum([count for count, _ in tails], axis=0)
    rest = np.mean([rest for _, rest in tails], axis=0)
    with np.errstate(divide="ignore"):
        return -np.log((counted + rest) / (n + 1))


def surprise_steps(n: int) -> FloatArray:
    """The surprise at which the p-value steps down, in ascending order; a ``Promise`` is fitted on them.

    To count the steps at or above a surprise is to count the held-out rows at least as novel, so that the threshold and
    the p-values of a promise that has these steps for held-out rows are those of CV+.

    Example:
        >>> np.exp(-surprise_steps(3))
        array([0.75, 0.5 , 0.25])
    """
    return -np.log(np.arange(n, 0, -1) / (n + 1))


def _tail(calibration: FloatArray, novelty: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How many held-out rows are at least as novel, and where between two of them a row lies, from 1 down to 0."""
    at = np.searchsorted(calibration, novelty, side="left")
    finite = calibration[np.isfinite(calibration)]
    low, high = (finite[0], finite[-1]) if len(finite) else (0.0, 0.0)
    spread = (high - low) or 1.0
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        below = (low - novelty).clip(0) / spread
        above = (novelty - high).clip(0) / spread
        left = calibration[np.maximum(at - 1, 0)]
        right = calibration[np.minimum(at, len(calibration) - 1)]
        between = (right - novelty) / (right - left)
        outside = np.where(at == 0, below / (1 + below), 1 / (1 + above))
    inside = (at > 0) & (at < len(calibration))
    rest = np.nan_to_num(np.where(inside, between, outside), nan=0.0)
    # Only beyond all held-out rows may nothing be left: the surprise has no upper end.
    lowest = np.where(at == len(calibration), 0.0, _EDGE)
    return (len(calibration) - at).astype(np.float64), rest.clip(lowest, 1 - _EDGE)
