"""One offset of the novelty per class, so that the rows of each class are flagged alike."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax

from offmap.arrays import FloatArray
from offmap.calibration.conditional import rows_above

_ROUNDS = 60
# Equal weights of all rows make the equations singular without any damping.
_LEAST_DAMPING = 1e-9
# The share of a class, nearest to its threshold, whose weights say how the threshold moves.
_NEAR = 0.1
_LARGEST_LOG_SHARPNESS = 3.0


def log_proba(proba: FloatArray) -> FloatArray:
    """Logarithms of probabilities, none below a hundredth of an even share: a forest may say zero, a network NaN."""
    return np.asarray(np.log(np.fmax(proba, 0.01 / proba.shape[1])), dtype=np.float64)


def fitted_sharpness(logs: FloatArray, codes: NDArray[np.int64]) -> float:
    r"""The exponent $\beta$ with which $p_c^\beta / \sum_k p_k^\beta$ predicts the classes of held-out rows best.

    It is above 1 for a classifier that is less sure than it could be, and below for one that is too sure.

    Args:
        logs: Logarithms of the probabilities of held-out rows.
        codes: Their classes.

    Reference: Guo, Pleiss, Sun and Weinberger, On Calibration of Modern Neural Networks, 2017, section 4.2.

    Example:
        >>> unsure = np.log([[0.6, 0.4]] * 10)
        >>> round(fitted_sharpness(unsure, np.array([0] * 9 + [1])), 2)
        5.42
    """
    rows = np.arange(len(codes))

    def loss(exponent: float) -> float:
        sharpened = np.exp(exponent) * logs
        return float(np.mean(logsumexp(sharpened, axis=1) - sharpened[rows, codes]))

    bounds = (-_LARGEST_LOG_SHARPNESS, _LARGEST_LOG_SHARPNESS)
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))


def class_weights(logs: FloatArray, sharpness: float) -> FloatArray:
    r"""How much each class counts for a row: $w_c(x) \propto p_c(x)^\beta$, with the sum 1.

    Example:
        >>> class_weights(np.log([[0.8, 0.2]]), 0.5).round(2)
        array([[0.67, 0.33]])
    """
    return np.asarray(softmax(sharpness * logs, axis=1), dtype=np.float64)


def class_offsets(novelty: FloatArray, weights: FloatArray, groups: NDArray[np.bool_], alpha: float) -> FloatArray:
    r"""Offsets $\theta$ such that $s(x) > \sum_c w_c(x) \theta_c$ flags a share ``alpha`` of the rows of each class.

    These are as many equations as unknowns. If $q_c$ is the conformal quantile of $s - w \cdot \theta$ among the rows
    of class $c$ and $W_c$ the mean weight of those that lie near it, $W \Delta = q$ is Newton's step; it is damped
    as Levenberg and Marquardt do, so that each step that is taken brings the thresholds nearer to zero.

    Args:
        novelty: Novelty of the held-out rows.
        weights: How much each class counts for them.
        groups: Which of them stand for each class.
        alpha: Rate of each class.

    Example:
        >>> novelty, codes = np.r_[np.arange(19.0), 100 + np.arange(19.0)], np.repeat([0, 1], 19)
        >>> class_offsets(novelty, np.eye(2)[codes], codes == np.array([[0], [1]]), 0.05).round(1)
        array([ 18., 118.])
    """
    offsets, damping = np.zeros(len(groups)), 0.1
    finite = novelty[np.isfinite(novelty)]
    if not len(finite):
        return offsets
    novelty = novelty.clip(finite.min(), finite.max())
    quantiles, near = _thresholds(novelty, weights, groups, alpha)
    for _ in range(_ROUNDS):
        tried = offsets + np.linalg.solve(near + damping * np.eye(len(groups)), quantiles)
        left, near_left = _thresholds(novelty - weights @ tried, weights, groups, alpha)
        if better := float(left @ left) < float(quantiles @ quantiles):
            offsets, quantiles, near = tried, left, near_left
        damping = max(damping / 2, _LEAST_DAMPING) if better else damping * 4
        if damping > 1 / _LEAST_DAMPING:
            break
    return offsets


def _thresholds(
    moved: FloatArray, weights: FloatArray, groups: NDArray[np.bool_], alpha: float
) -> tuple[FloatArray, FloatArray]:
    """The conformal threshold of each group, and the mean weights of its rows near it."""
    found = [_threshold(moved[group], weights[group], alpha) for group in groups]
    return np.array([threshold for threshold, _ in found]), np.array([near for _, near in found])


def _threshold(moved: FloatArray, weights: FloatArray, alpha: float) -> tuple[float, FloatArray]:
    n, order = len(moved), np.argsort(moved, kind="stable")
    place, reach = n - 1 - max(rows_above(n, alpha), 0), max(1, round(_NEAR * n / 2))
    near = order[max(0, place - reach) : place + reach + 1]
    return float(moved[order[place]]), weights[near].mean(axis=0)
