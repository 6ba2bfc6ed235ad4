"""The novelty of known rows of the stream, from many rows without a label and a few audit rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offmap.arrays import FloatArray

# Precisions of the normal prior of the coefficients: the level is nearly free, the curvature is held most.
_PRECISION = np.array([0.1, 0.04, 0.25])
_NEWTON_STEPS = 30
# Values that stand for the distribution, and draws of the coefficients that tell its interval.
_VALUES, _DRAWS = 999, 400


@dataclass(frozen=True, eq=False)
class KnownNovelty:
    """The distribution of the novelty of known rows.

    Args:
        values: Evenly spaced quantiles of it.
        rate: Share of the known rows that ``alpha`` of these values stand for, with its 95 % interval.
    """

    values: FloatArray
    rate: tuple[float, float, float]


def known_novelty(stream: FloatArray, audits: FloatArray, known: NDArray[np.bool_], *, alpha: float) -> KnownNovelty:
    r"""Estimates how the novelty of known rows of the stream is distributed.

    Most rows of the stream have no label, so nobody knows which of them are of known classes. Audit rows tell with
    which probability: logistic regression on $1, u, u^2$, where $u$ is the rank of a row's novelty in the stream, with
    a normal prior (the mode and its curvature, after Laplace). Each row of the stream then counts with its probability.
    All audit rows inform it, those of unknown classes too, so a few dozen are enough; a quantile of the audit rows of
    known classes alone would vary more than twice as much.

    Args:
        stream: Novelty of rows of the stream, for a model that has not seen them.
        audits: Novelty of audit rows, likewise.
        known: Whether each of these is of a known class.
        alpha: The rate to keep, whose interval is wanted.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> novelty, known = np.sort(rng.normal(size=4000)), np.arange(4000) % 4 > 0
        >>> found = known_novelty(novelty, novelty[::100], known[1::100], alpha=0.1)
        >>> bool(abs(np.quantile(found.values, 0.9) - np.quantile(novelty, 0.9)) < 0.1)
        True
    """
    ordered = np.sort(stream)
    ranks = (np.searchsorted(ordered, audits) + 0.5) / (len(ordered) + 1)
    mode, covariance = _fit(_design(ranks), known)
    of_stream = _design((np.arange(len(ordered)) + 0.5) / len(ordered))
    shares = _cumulative(of_stream, mode[None])[0]
    places = np.searchsorted(shares, (np.arange(_VALUES) + 0.5) / _VALUES).clip(max=len(ordered) - 1)
    cut = min(int(np.searchsorted(shares, 1 - alpha)), len(ordered) - 1)
    # A fixed draw: the same rows must give the same interval.
    drawn = np.random.default_rng(0).multivariate_normal(mode, covariance, _DRAWS)
    low, high = np.quantile(1 - _cumulative(of_stream, drawn)[:, cut], [0.025, 0.975])
    return KnownNovelty(ordered[places], (alpha, float(min(low, alpha)), float(max(high, alpha))))


def _design(ranks: FloatArray) -> FloatArray:
    centred = 2 * ranks - 1
    return np.stack([np.ones_like(ranks), centred / 2, centred**2], axis=1)


def _fit(rows: FloatArray, known: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """The most probable coefficients, by Newton's method, and their covariance about them."""
    mode = np.zeros(rows.shape[1])
    for _ in range(_NEWTON_STEPS):
        share = _logistic(rows @ mode)
        slope = rows.T @ (share - known) + _PRECISION * mode
        curvature = (rows * (share * (1 - share))[:, None]).T @ rows + np.diag(_PRECISION)
        step = np.linalg.solve(curvature, slope)
        # A full step may overshoot where the shares are near 0 or 1.
        mode = mode - step / max(1.0, float(np.abs(step).max()))
    return mode, np.asarray(np.linalg.inv(curvature), np.float64)


def _cumulative(rows: FloatArray, coefficients: FloatArray) -> FloatArray:
    """The share of the known rows up to each row, for each vector of coefficients."""
    sums = np.cumsum(_logistic(coefficients @ rows.T), axis=1)
    return np.asarray(sums / sums[:, -1:])


def _logistic(values: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-values.clip(-30, 30))))
