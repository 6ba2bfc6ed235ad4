r"""Rows judged together: a row whose neighbours look novel is more likely to be novel itself.

A new class brings many rows that resemble each other. Some of them look familiar to the model, but most do not, so
neighbours tell more than the row alone. Known rows that the model has not seen are put into the same pool, and each row
of the pool gets half its own rank and half the mean rank of its $k$ nearest rows:

$$f_i = \tfrac12 r_i + \tfrac{1}{2k} \sum_{j \in N_k(i)} r_j$$

All rows of the pool are treated alike, so known rows to judge and known rows to compare with remain exchangeable, and
conformal p-values of $f$ are valid.

Reference: Marandon, Lei, Mary and Roquain, Adaptive Novelty Detection with False Discovery Rate Guarantee, 2024, for
scores that learn from the rows to judge.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse
from scipy.stats import rankdata
from sklearn.neighbors import NearestNeighbors

from offmap.arrays import FloatArray
from offmap.calibration.conformal import p_values
from offmap.calibration.cv import first_member
from offmap.calibration.foreign import require_spread, row_count
from offmap.calibration.promise import Promise
from offmap.calibration.suggestion import suggest_rate
from offmap.calibration.wrapping import decided, feature_rows, require_plain_promise
from offmap.parameters import Count, Fraction, require
from offmap.verdict import Verdict

Features = Callable[[Any], Any]
# Share of a row's own rank; its neighbours have the rest.
_OWN = 0.5


def assess_together(
    model: Any,
    X: Any,
    known: Any,
    *,
    alpha: float | Literal["auto"] | None = None,
    neighbors: int = 10,
    features: Features | None = None,
) -> Verdict:
    """Assesses rows as one batch, which finds novel rows better where they come in groups, such as new classes.

    The false-alarm rate is kept as by ``model.assess``. The answer for a row depends on the other rows of the batch.
    Do not use it for single, isolated outliers: their neighbours are known rows, and they look less novel among them.

    Args:
        model: A fitted model of Offmap, ``Calibrated`` or ``Guarded``, without ``confidence`` and ``by_class``.
        X: Rows to judge, a hundred or more.
        known: Rows of known classes that the model has **not** seen, such as a validation set: at least 1 / alpha.
        alpha: False-alarm rate; by default the model's. "auto" takes the one that the rows suggest, as
            ``suggest_rate`` does.
        neighbors: Number of neighbours. Lower it if new classes have fewer rows in ``X``.
        features: Maps rows to the numbers by which neighbours are found. By default the output of the model's encoder,
            or else the rows themselves; each feature is divided by its standard deviation.

    Returns:
        The verdict of the model with the novelty, p-values, decisions and labels of rows judged together.

    Example:
        >>> from offmap.data import hold_out_classes, load
        >>> from offmap.openset import MSPClassifier
        >>> digits = load("digits")
        >>> split = hold_out_classes(digits.X, digits.y, known=range(7), test_size=0.4, seed=0)
        >>> X, y, known = split.X_train[200:], split.y_train[200:], split.X_train[:200]
        >>> model = MSPClassifier(random_state=0).fit(X, y).recalibrate(known)
        >>> one_by_one, together = model.assess(split.X_test), assess_together(model, split.X_test, known)
        >>> bool(together.novel[split.unknown].mean() > one_by_one.novel[split.unknown].mean() + 0.1)
        True
    """
    require_plain_promise(model, "judging rows together does not keep; fit it without")
    require("neighbors", neighbors, Count)
    if alpha not in (None, "auto"):
        require("alpha", alpha, Fraction)
    if row_count(known) < 1:
        raise ValueError("known has 0 samples; give rows of known classes that the model has not seen")
    novelty = model.novelty(known)
    require_spread(novelty)
    verdict, n = model.assess(X), len(novelty)
    pool = np.concatenate([_features(model, name, X, features) for name, X in (("known", known), ("X", X))])
    pooled = pooled_novelty(np.concatenate([novelty, verdict.novelty]), pool, neighbors)
    promise = _promise(pooled[:n], pooled[n:], model.alpha if alpha is None else alpha, model.alpha)
    found = decided(verdict, model, promise.p_value(pooled[n:]), promise.novel(pooled[n:]))
    return replace(found, novelty=pooled[n:])


def pooled_novelty(novelty: FloatArray, features: FloatArray, neighbors: int = 10) -> FloatArray:
    """Half the rank of each row's novelty in the pool, and half the mean rank of its nearest rows; between 0 and 1.

    Args:
        novelty: Novelty of all rows of the pool.
        features: What neighbours are found by, ``(n, d)``.
        neighbors: Number of neighbours of each row.

    Example:
        >>> pooled_novelty(np.array([1.0, 2.0, 9.0, 3.0]), np.array([[0.0], [1.0], [10.0], [11.0]]), neighbors=1)
        array([0.375, 0.375, 0.875, 0.875])
    """
    ranks = rankdata(novelty) / len(novelty)
    scale = features.std(axis=0)
    rows = np.asarray(features / np.where(scale > 0, scale, 1.0), dtype=np.float32)
    search = NearestNeighbors(n_neighbors=min(neighbors, len(rows) - 1)).fit(rows)
    return np.asarray(_OWN * ranks + (1 - _OWN) * ranks[search.kneighbors(return_distance=False)].mean(axis=1))


def _features(model: Any, name: str, X: Any, features: Features | None) -> FloatArray:
    """What neighbours are found by: the given features, those of the model's encoder, or the rows as they are."""
    encoder = getattr(first_member(model), "encoder_", None)
    rows = row_count(X)
    if features is not None:
        X = features(X)
    elif encoder is not None:
        X = encoder.transform(X)
    found = feature_rows(name, X.toarray() if issparse(X) else X)  # type: ignore[attr-defined] # every sparse matrix has it
    if len(found) != rows:
        raise ValueError(f"features must return one row of numbers per row; got {len(found)} for {rows} rows of {name}")
    return found


def _promise(known: FloatArray, pooled: FloatArray, alpha: float | Literal["auto"], default: float) -> Promise:
    """The promise of known rows in the pool, at the given rate or at the one that the other rows suggest."""
    if alpha != "auto":
        return Promise(alpha=alpha).fit(known)
    suggested = suggest_rate(p_values(np.sort(known), pooled))
    return Promise(alpha=suggested.alpha if suggested.novel_share else default).fit(known)
