"""Picks an estimator by the rows and columns there are, and says which."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from offmap.dependence.covariance import gaussian_pointwise, normal_scores
from offmap.dependence.door import FloatArray
from offmap.dependence.fitting import Training, fit, split, valued
from offmap.dependence.neighbours import ksg_pointwise
from offmap.dependence.residual import GaussianRatio, Residual, ResidualCritic
from offmap.dependence.summed import TotalCorrelation

# Columns of both variables up to which neighbours are near enough.
FEW_COLUMNS = 3
# Rows that a network needs, and rows a column that a covariance needs.
FEW_ROWS = 500
ROWS_A_COLUMN = 4
NEIGHBOURS, COPULA, CORRECTED = "ksg", "gaussian-copula", "gaussian-copula + js"


@dataclass(frozen=True)
class Pick:
    """What was picked, why, and what each row adds to the value."""

    estimator: str
    reason: str
    pointwise: FloatArray


def pick(variables: Sequence[FloatArray], training: Training) -> Pick:
    """Estimates what two variables share by what suits their size.

    A mutual information does not change when columns are stretched, so that every way starts from the Gaussian
    quantiles of the ranks.
    """
    scores = [normal_scores(variable) for variable in variables]
    rows, columns = len(scores[0]), sum(score.shape[1] for score in scores)
    if columns <= FEW_COLUMNS:
        return Pick(NEIGHBOURS, f"{columns} columns", ksg_pointwise(scores))
    if rows < ROWS_A_COLUMN * columns:
        return Pick(NEIGHBOURS, f"{rows} rows are too few for {columns} columns", ksg_pointwise(scores))
    if rows < FEW_ROWS:
        return Pick(COPULA, f"{rows} rows are too few to learn from", gaussian_pointwise(scores))
    return _corrected(scores, training)


def _corrected(scores: Sequence[FloatArray], training: Training) -> Pick:
    """The Gaussian copula of all rows, and what a network that starts from it finds on held-out rows to add."""
    parts = split(scores, training.held_out)
    # The Gaussian knows all rows: from some alone it would be too sure of itself on the others, and the network would
    # add what it takes to undo that.
    critic = partial(ResidualCritic, GaussianRatio.fit(*scores))
    widths = [score.shape[1] for score in scores]
    model = TotalCorrelation(widths, estimator=Residual, critic=critic, hidden=(64, 64), negatives=2)
    fit(model, parts, training)
    found = valued(model, parts.valued, training.batch_size)
    pointwise = gaussian_pointwise(scores)
    if not found.any():
        return Pick(COPULA, "a network found nothing to add on held-out rows", pointwise)
    # Each row that was valued stands for as many as there are to one of them, so that the mean is the sum of means.
    pointwise[parts.places.numpy()] += found * (len(pointwise) / len(found))
    return Pick(CORRECTED, "the log ratio of a Gaussian copula, corrected by a network", pointwise)


def summary(picks: Sequence[Pick]) -> tuple[str, str]:
    """The names of what was picked for the terms of a sum, and the reasons."""
    names = dict.fromkeys(found.estimator for found in picks)
    reasons = dict.fromkeys(f"{found.estimator}: {found.reason}" if len(names) > 1 else found.reason for found in picks)
    return ", ".join(names), "; ".join(reasons)
