"""``estimator="auto"``: picks an estimator by the number of rows and columns, and says which and why."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from offmap.dependence.covariance import gaussian_pointwise, normal_scores, redundant_columns
from offmap.dependence.fitting import Training, evaluate_stack, fit_stack, split
from offmap.dependence.interval import Revalue
from offmap.dependence.nearest_neighbors import ksg_pointwise, mixed_ksg_pointwise, on_rows
from offmap.dependence.nonparametric import Pointwise
from offmap.dependence.residual import GaussianRatio, Residual, ResidualCritic
from offmap.dependence.ties import has_ties
from offmap.dependence.validation import FloatArray

# Up to this many columns in both variables together, nearest neighbours are accurate.
FEW_COLUMNS = 3
# Up to this many, they are better than a covariance where columns have ties.
FEW_MIXED_COLUMNS = 6
# Rows that neighbours need, that a network needs, and per column that a covariance needs.
FEWEST_ROWS = 4
FEW_ROWS = 500
ROWS_PER_COLUMN = 4
KSG, MIXED, COPULA, CORRECTED = "ksg", "mixed_ksg", "gaussian_copula", "gaussian_copula + js"

Pair = Sequence[FloatArray]


@dataclass(frozen=True)
class Task:
    """Two groups of variables whose mutual information is to be estimated.

    Attributes:
        pair: The columns of both groups, or their ranks, with ties broken.
        tied: The same columns with their ties.
        names: Names of the columns of both groups.
    """

    pair: Pair
    tied: Pair
    names: Sequence[list[str]]


@dataclass(frozen=True)
class Pick:
    """The estimator that was picked for one pair of variables.

    Attributes:
        estimator: Its name.
        reason: Why it was picked.
        pointwise: Contribution of each row to the value.
        revalue: Maps positions of rows to the value of these rows alone, for nearest-neighbour estimators.
        columns: Number of columns that were used.
    """

    estimator: str
    reason: str
    pointwise: FloatArray
    revalue: Revalue | None = None
    columns: int = 0

    def on(self, rows: NDArray[np.intp]) -> float:
        """Returns the value of the rows at the given positions."""
        return float(self.pointwise[rows].mean()) if self.revalue is None else self.revalue(rows)


@dataclass(frozen=True)
class _Scored:
    """The normal scores of a pair without redundant columns, and what is worth saying about them.

    ``infinite`` says why the true value is infinite, if a column of one side follows from the other side.
    """

    pair: Pair
    infinite: str = ""
    notes: tuple[str, ...] = ()


def pick(tasks: Sequence[Task], training: Training) -> list[Pick]:
    """Estimates the mutual information of each pair by the estimator that suits its size.

    Monotone maps of single columns do not change mutual information, so every estimator starts from normal scores.
    """
    if len(tasks[0].pair[0]) < FEWEST_ROWS:
        raise ValueError(f"an estimate needs at least {FEWEST_ROWS} rows; got {len(tasks[0].pair[0])}")
    scored = [_scored(task) for task in tasks]
    simple = [_mixed(task) or _without_network(found) for task, found in zip(tasks, scored, strict=True)]
    rest = [found.pair for found, done in zip(scored, simple, strict=True) if done is None]
    corrected = _with_network(rest, training)
    picks = [next(corrected) if done is None else done for done in simple]
    return [_with_notes(one, found) for one, found in zip(picks, scored, strict=True)]


def _mixed(task: Task) -> Pick | None:
    """The estimate of few columns some of which have ties; None for others."""
    if _count_columns(task.tied) > FEW_MIXED_COLUMNS or not any(map(has_ties, task.tied)):
        return None
    scores = [normal_scores(variable) for variable in task.tied]
    return _by_neighbors(MIXED, "many rows share a value", mixed_ksg_pointwise, scores)


def _scored(task: Task) -> _Scored:
    scores = [normal_scores(variable) for variable in task.pair]
    columns = _count_columns(scores)
    if len(scores[0]) < ROWS_PER_COLUMN * columns:
        return _Scored(scores)
    redundant = [redundant_columns(variable) for variable in scores]
    kept = [np.delete(variable, places, axis=1) for variable, places in zip(scores, redundant, strict=True)]
    names = [np.delete(own, places).tolist() for own, places in zip(task.names, redundant, strict=True)]
    infinite = _infinite(kept, [*names[0], *names[1]])
    if columns <= FEW_COLUMNS:
        return _Scored(scores, infinite)
    left_out = [own[place] for own, places in zip(task.names, redundant, strict=True) for place in places]
    notes = [f"without {', '.join(left_out)}, which follows from other columns"] if left_out else []
    notes += ["values that many rows share are taken as continuous"] if any(map(has_ties, task.tied)) else []
    return _Scored(kept, infinite, tuple(notes))


def _infinite(scores: Pair, names: Sequence[str]) -> str:
    redundant = redundant_columns(np.hstack(scores))
    named = ", ".join(names[place] for place in redundant)
    return f"the true value is infinite, as {named} follows from other columns" if redundant else ""


def _without_network(scored: _Scored) -> Pick | None:
    """The estimate of few columns or few rows; None if there are enough rows for a network."""
    pair = scored.pair
    rows, columns = len(pair[0]), _count_columns(pair)
    if columns <= FEW_COLUMNS:
        return _by_neighbors(KSG, f"{columns} columns", ksg_pointwise, pair)
    if rows < ROWS_PER_COLUMN * columns:
        return _by_neighbors(KSG, f"{rows} rows are too few for {columns} columns", ksg_pointwise, pair)
    if scored.infinite:
        return _by_neighbors(KSG, "the covariance is singular", ksg_pointwise, pair)
    if rows < FEW_ROWS:
        return Pick(COPULA, f"{rows} rows are too few to train a network", gaussian_pointwise(pair))
    return None


def _by_neighbors(name: str, reason: str, function: Pointwise, pair: Pair) -> Pick:
    return Pick(name, reason, function(pair), on_rows(function, pair), _count_columns(pair))


def _with_notes(one: Pick, scored: _Scored) -> Pick:
    if one.estimator == MIXED:
        return one
    said = (one.reason, scored.infinite, *scored.notes)
    return replace(one, reason="; ".join(words for words in said if words))


def _count_columns(pair: Pair) -> int:
    return sum(variable.shape[1] for variable in pair)


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
