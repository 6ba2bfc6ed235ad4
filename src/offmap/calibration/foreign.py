"""Other people's models: which of their methods is a novelty, and in which direction."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from offmap.arrays import FloatArray


def novelty_function(model: Any) -> Callable[[Any], Any]:
    """How to get the novelty of rows, higher for novel ones, from a fitted outlier detector or a plain function.

    scikit-learn's ``score_samples`` and ``decision_function`` are higher for *normal* rows, PyOD's
    ``decision_function`` is higher for *novel* ones. A pipeline follows its last step.

    Example:
        >>> from sklearn.ensemble import IsolationForest
        >>> forest = IsolationForest(random_state=0).fit([[0.0], [0.1], [0.2], [0.3]])
        >>> novelty = novelty_function(forest)
        >>> bool(novelty([[9.0]])[0] > novelty([[0.1]])[0])
        True
    """
    if hasattr(model, "novelty") and callable(model.novelty):
        return model.novelty
    if hasattr(model, "decision_function") and _is_pyod(model):
        return model.decision_function
    for name in ("score_samples", "decision_function"):
        if hasattr(model, name):
            return _negated(getattr(model, name))
    if callable(model):
        return model
    raise ValueError(
        f"estimator {type(model).__name__} must have score_samples or decision_function, or be a function of rows"
        + (": LocalOutlierFactor has them with novelty=True" if type(model).__name__ == "LocalOutlierFactor" else "")
    )


def checked_scores(scores: Any, rows: int) -> FloatArray:
    """Scores as one double per row; anything else that a foreign model returns is refused."""
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (rows,):
        raise ValueError(f"the model must return one score per row, shape ({rows},); got shape {values.shape}")
    if np.isnan(values).any():
        raise ValueError(f"the model gave NaN as the score of row {int(np.isnan(values).argmax())}")
    return values


def require_spread(novelty: FloatArray) -> None:
    """Refuses calibration scores that are all equal, from which no threshold can be set.

    Example:
        >>> require_spread(np.ones(100))
        Traceback (most recent call last):
        ValueError: all 100 calibration rows have the same score, 1; choose another score
    """
    if len(novelty) > 1 and (novelty == novelty[0]).all():
        same = f"all {len(novelty)} calibration rows have the same score, {novelty[0]:g}"
        raise ValueError(f"{same}; choose another score")


def row_count(X: Any) -> int:
    """Rows of an array, a data frame, a sparse matrix or a list."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _negated(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda X: -np.asarray(method(X), dtype=np.float64)


def _is_pyod(model: Any) -> bool:
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return any(cls.__module__.partition(".")[0] == "pyod" for cls in type(last).__mro__)
