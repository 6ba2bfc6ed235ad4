"""Training rows of which some are novel: trimming what looks novel before the fit."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from offmap.arrays import FloatArray
from offmap.calibration.foreign import row_count
from offmap.calibration.split import Indices, Split
from offmap.parameters import Limit
from offmap.random_state import draw_seed

Contamination = Annotated[float, Limit("from 0 to below 0.5", lambda value: 0 <= value < 0.5)] | Literal["auto"]
# Fits on the training rows of a split and returns the novelty of its held-out rows.
ScoreSplit = Callable[[Split], FloatArray]


def ordinary_rows(estimator: Any, X: Any, rng: np.random.Generator) -> tuple[Any, float]:
    """The rows of ``X`` that do not look novel to the estimator fitted on other rows, and the share left out.

    Args:
        estimator: An unfitted detector with ``contamination``, which can be fitted on one part of the rows.
        X: The rows.
        rng: Splits the rows, and seeds the copies of the estimator.
    """

    def score(split: Split) -> FloatArray:
        settings = {"contamination": 0.0, "calibration": 0.5, "alpha": 0.5, "confidence": None}
        model = clone(estimator).set_params(**settings, random_state=draw_seed(rng))
        return model._fit_split(X, None, split).novelty(_safe_indexing(X, split.held_out))

    rows = row_count(X)
    kept = rows_to_keep(score, rows, estimator.contamination, rng)
    return _safe_indexing(X, kept), 1 - len(kept) / rows


def rows_to_keep(score: ScoreSplit, rows: int, contamination: Contamination, rng: np.random.Generator) -> Indices:
    """Indices of the rows that do not look novel to a model that was trained on other rows.

    The rows are split in two halves, and each half is scored by a model of the other, since a model may know its own
    training rows by heart. The most novel rows of each half are left out.

    Args:
        score: Fits a model on some rows and scores others.
        rows: Number of rows.
        contamination: Share of the rows to leave out. "auto" leaves out those whose novelty is more than three
            interquartile ranges above the third quartile.
        rng: Splits the rows.
    """
    order = rng.permutation(rows)
    first, second = np.sort(order[: rows // 2]), np.sort(order[rows // 2 :])
    kept = [
        held_out[looks_normal(score(Split(train, held_out)), contamination)]
        for train, held_out in ((first, second), (second, first))
    ]
    return np.sort(np.concatenate(kept))


def looks_normal(novelty: FloatArray, contamination: Contamination) -> NDArray[np.bool_]:
    """Whether each row is kept, from the novelty that a model of other rows gives it.

    Example:
        >>> looks_normal(np.array([0.1, 9.0, 0.3, 0.2]), 0.25)
        array([ True, False,  True,  True])
    """
    if contamination == "auto":
        return novelty <= _limit(novelty)
    order = np.argsort(novelty, kind="stable")
    ordinary = np.ones(len(novelty), dtype=bool)
    ordinary[order[len(order) - round(float(contamination) * len(order)) :]] = False
    return ordinary


def _limit(novelty: FloatArray) -> float:
    """Three interquartile ranges above the third quartile; infinite scores have no distance to measure."""
    finite = novelty[np.isfinite(novelty)]
    if not len(finite):
        raise ValueError(
            f'contamination="auto" needs finite scores, and those of all {len(novelty)} rows are infinite; scale the '
            "rows, or give contamination as a share"
        )
    low, high = np.quantile(finite, [0.25, 0.75])
    return float(high + 3 * (high - low))


def trimmed_rate(rate: float, trimmed: float) -> float:
    """The rate of false alarms among all normal rows if every row that was trimmed was normal after all.

    Example:
        >>> round(trimmed_rate(0.05, 0.02), 3)
        0.069
    """
    return rate + trimmed * (1 - rate)
