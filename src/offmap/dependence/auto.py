"""``estimator="auto"``: picks an estimator by the number of rows and columns, and says which and why."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from offmap.dependence.covariance import gaussian_pointwise, normal_scores
from offmap.dependence.fitting import Training, evaluate_stack, fit_stack, split
from offmap.dependence.nearest_neighbors import ksg_pointwise
from offmap.dependence.residual import GaussianRatio, Residual, ResidualCritic
from offmap.dependence.validation import FloatArray

# Up to this many columns in both variables together, nearest neighbours are accurate.
FEW_COLUMNS = 3
# Rows that a network needs, and rows per column that a covariance needs.
FEW_ROWS = 500
ROWS_PER_COLUMN = 4
KSG, COPULA, CORRECTED = "ksg", "gaussian_copula", "gaussian_copula + js"

Pair = Sequence[FloatArray]


@dataclass(frozen=True)
class Pick:
    """The estimator that was picked for one pair of variables.

    Attributes:
        estimator: Its name.
        reason: Why it was picked.
        pointwise: Contribution of each row to the value.
    """

    estimator: str
    reason: str
    pointwise: FloatArray


def pick(pairs: Sequence[Pair], training: Training) -> list[Pick]:
    """Estimates the mutual information of each pair by the estimator that suits its size.

    Monotone maps of single columns do not change mutual information, so every estimator starts from normal scores.
    """
    scores = [[normal_scores(variable) for variable in pair] for pair in pairs]
    simple = [_without_network(pair) for pair in scores]
    corrected = _with_network([pair for pair, found in zip(scores, simple, strict=True) if found is None], training)
    return [next(corrected) if found is None else found for found in simple]


def _without_network(pair: Pair) -> Pick | None:
    """The estimate of few columns or few rows; None if there are enough rows for a network."""
    rows, columns = len(pair[0]), sum(variable.shape[1] for variable in pair)
    if columns <= FEW_COLUMNS:
        return Pick(KSG, f"{columns} columns", ksg_pointwise(pair))
    if rows < ROWS_PER_COLUMN * columns:
        return Pick(KSG, f"{rows} rows are too few for {columns} columns", ksg_pointwise(pair))
    if rows < FEW_ROWS:
        return Pick(COPULA, f"{rows} rows are too few to train a network", gaussian_pointwise(pair))
    return None


def _with_network(pairs: Sequence[Pair], training: Training) -> Iterator[Pick]:
    stacks = [pairs] if training.stack_terms and pairs else [[pair] for pair in pairs]
    for stack in stacks:
        yield from _corrected(stack, training)


def _corrected(pairs: Sequence[Pair], training: Training) -> list[Pick]:
    """The Gaussian copula of all rows plus what networks that start from it find on held-out rows."""
    x, y = (_padded([pair[side] for pair in pairs]) for side in (0, 1))
    parts = split([x, y], training.held_out)
    # The Gaussians are fitted to all rows: fitted to the training rows alone they would be overconfident on the others,
    # and the networks would learn to undo that.
    ratios = [GaussianRatio.fit(*pair) for pair in pairs]
    widths = [[pair[side].shape[1] for pair in pairs] for side in (0, 1)]
    model = Residual(*widths, critic=partial(ResidualCritic, ratios), hidden=(64, 64), n_negatives=2)
    fit_stack(model, parts, training)
    residuals = evaluate_stack(model, parts.evaluation, training.batch_size)
    rows = parts.evaluation_rows.numpy()
    return [_with_residual(pair, residual, rows) for pair, residual in zip(pairs, residuals, strict=True)]


def _with_residual(pair: Pair, residual: FloatArray, rows: FloatArray) -> Pick:
    pointwise = gaussian_pointwise(pair)
    if not residual.any():
        return Pick(COPULA, "a network found nothing to add on held-out rows", pointwise)
    # The residual is known on some rows only; scaled up, its mean over all rows is its mean over those.
    pointwise[rows] += residual * (len(pointwise) / len(residual))
    return Pick(CORRECTED, "the log ratio of a Gaussian copula, corrected by a network", pointwise)


def _padded(variables: Sequence[FloatArray]) -> FloatArray:
    """One variable per term, padded with zeros to the widest: ``(n, terms, widest)``."""
    widest = max(variable.shape[1] for variable in variables)
    return np.stack([np.pad(v, ((0, 0), (0, widest - v.shape[1]))) for v in variables], axis=1)


def summary(picks: Sequence[Pick]) -> tuple[str, str]:
    """Joins the names of the estimators picked for the terms of a sum, and the reasons."""
    names = dict.fromkeys(found.estimator for found in picks)
    reasons = dict.fromkeys(f"{found.estimator}: {found.reason}" if len(names) > 1 else found.reason for found in picks)
    return ", ".join(names), "; ".join(reasons)
