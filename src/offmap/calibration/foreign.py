"""Other people's models: which of their methods is a novelty, and in which direction."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from offmap.arrays import FloatArray


def novelty_function(model: Any) -> Callable[[Any], Any]:
    """How to get the novelty of rows, higher for novel ones, from a fitted outlier detector or a plain function.

    scikit-learn's ``score_samples`` and ``decision_function`` are higher for *normal* rows, PyOD's
    ``decision_function`` is higher for *novel* ones. A pipeline follows its last step, and a search what it searches.

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
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the model must return one number per row as its score: {error}") from None
    if values.shape != (rows,):
        raise ValueError(f"the model must return one score per row, shape ({rows},); got shape {values.shape}")
    if np.isnan(values).any():
        raise ValueError(
            f"the model gave NaN as the score of row {int(np.isnan(values).argmax())}; leave such rows out, fill their "
            "missing values, or choose a model that scores them"
        )
    return values


def require_spread(novelty: FloatArray) -> None:
    """Refuses calibration scores that are all equal, from which no threshold can be set.

    Example:
        >>> require_spread(np.ones(100))
        Traceback (most recent call last):
        ValueError: all 100 calibration rows have the same score, 1; choose another score or another model
    """
    if len(novelty) > 1 and (novelty == novelty[0]).all():
        same = f"all {len(novelty)} calibration rows have the same score, {novelty[0]:g}"
        raise ValueError(f"{same}; choose another score or another model")


def require_detector(model: Any) -> None:
    """Refuses a model without a novelty, and a classifier, whose ``decision_function`` tells classes apart."""
    if isinstance(_last_step(model), ClassifierMixin) and not hasattr(model, "novelty"):
        raise ValueError(f"estimator is the classifier {type(_last_step(model)).__name__}; put it into Guarded instead")
    novelty_function(model)


def require_classifier(model: Any) -> None:
    """Refuses a fitted model without classes, such as an outlier detector."""
    if not hasattr(model, "classes_"):
        check_is_fitted(model)
        name = type(_last_step(model)).__name__
        raise ValueError(f"classifier {name} has no classes_; put an outlier detector into Calibrated instead")


def row_count(X: Any) -> int:
    """Rows of an array, a data frame, a sparse matrix or a list."""
    return X.shape[0] if hasattr(X, "shape") and len(X.shape) else len(X)


def with_rows(X: Any) -> Any:
    """The same rows, in a layout from which single rows can be taken: some sparse matrices have none."""
    return X.tocsr() if issparse(X) else X  # type: ignore[attr-defined] # every sparse matrix has it


def _negated(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda X: -np.asarray(method(X), dtype=np.float64)


def _is_pyod(model: Any) -> bool:
    return any(cls.__module__.partition(".")[0] == "pyod" for cls in type(_last_step(model)).__mro__)


def unwrapped(model: Any) -> Any:
    """The model that answers: the best one of a search, what a ``FrozenEstimator`` holds, or ``model`` itself."""
    if not isinstance(model, BaseSearchCV | FrozenEstimator):
        return model
    return unwrapped(getattr(model, "best_estimator_", model.estimator))


def _last_step(model: Any) -> Any:
    model = unwrapped(model)
    return _last_step(model.steps[-1][1]) if isinstance(model, Pipeline) else model
