"""Features, logits and probabilities of a classifier: scikit-learn's, torch's, or computed elsewhere."""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import softmax
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_array
from torch import nn

from offmap.arrays import FloatArray
from offmap.calibration.foreign import unwrapped
from offmap.calibration.module_outputs import module_outputs
from offmap.scores import Outputs

Layer = str | Callable[[Any], Any] | None


def read_outputs(classifier: Any, X: Any, *, features: Layer, logits: str | None, with_features: bool) -> Outputs:
    """What the classifier computes of rows; ``X`` itself where it is ``Outputs`` already.

    Args:
        classifier: A fitted classifier, a torch module, or None if ``X`` is ``Outputs``.
        X: The rows.
        features: The layer of a module, or a function that maps rows to features. By default the rows as the last
            step of a pipeline gets them.
        logits: The layer of a module that returns logits.
        with_features: Whether features are needed at all.
    """
    if isinstance(X, Outputs):
        return X
    if classifier is None:
        raise ValueError("X must be Outputs(features=…, logits=…) where there is no classifier; or give a classifier")
    if isinstance(classifier, nn.Module):
        layer = features if isinstance(features, str) and with_features else None
        found = module_outputs(classifier, X, layer, logits)
        return Outputs(features(X), found.logits) if callable(features) and with_features else found
    given = _features(classifier, X, features) if with_features else None
    return Outputs(given, class_logits(classifier, X))


def class_logits(classifier: Any, X: Any) -> FloatArray:
    """One logit per class: ``decision_function``, or the logarithm of ``predict_proba``.

    scikit-learn's single column for two classes is the log-odds of the second.
    """
    if hasattr(classifier, "decision_function"):
        values = np.asarray(classifier.decision_function(X), dtype=np.float64)
        values = np.stack([-values / 2, values / 2], axis=1) if values.ndim == 1 else values
        if values.shape[1] == len(classifier.classes_) and not _compares_pairs(classifier):
            return values
    if not hasattr(classifier, "predict_proba"):
        raise ValueError(
            f"classifier {type(classifier).__name__} must have predict_proba, or decision_function with one column "
            'per class; a support vector machine has it with decision_function_shape="ovr"'
        )
    return np.log(np.maximum(np.asarray(classifier.predict_proba(X), dtype=np.float64), _SMALLEST))


def class_probabilities(classifier: Any, X: Any, outputs: Outputs) -> FloatArray:
    """The classifier's own probabilities, or the softmax of its logits."""
    if hasattr(classifier, "predict_proba") and not isinstance(X, Outputs):
        return np.asarray(classifier.predict_proba(X), dtype=np.float64)
    return softmax(np.asarray(outputs.logits, dtype=np.float64), axis=1)


def class_names(classifier: Any, classes: Any, y: NDArray[Any] | None, logits: Any) -> NDArray[Any]:
    """The class of each column of logits: the classifier's own, those given, those of ``y``, or 0, 1, …"""
    if hasattr(classifier, "classes_"):
        names = np.asarray(classifier.classes_)
    elif classes is not None:
        names = np.asarray(classes)
    else:
        found = np.arange(0) if y is None else np.unique(y)
        names = found if len(found) == logits.shape[1] else np.arange(logits.shape[1])
    if len(names) != logits.shape[1]:
        raise ValueError(
            f"the logits have {logits.shape[1]} columns, but there are {len(names)} classes; give classes=, one per "
            "column and in their order"
        )
    if len(np.unique(names)) < len(names):
        raise ValueError("classes holds a class twice; give one name per column of logits, each of them once")
    return names


def require_logits(outputs: Outputs, classes: int | None = None) -> None:
    """Refuses outputs without one logit per class; ``classes`` is how many there are, once that is known."""
    if outputs.logits is None:
        raise ValueError("X has no logits; give Outputs(logits=…), or use a detector, which needs none")
    columns = outputs.logits.shape[1]
    if columns < 2:
        raise ValueError(
            f"the logits have {columns} columns; give one per class: for two classes with the log-odds z, -z / 2 and "
            "z / 2"
        )
    if classes is not None and columns != classes:
        raise ValueError(f"the logits have {columns} columns, but there are {classes} classes; give one per class")


def require_finite(outputs: Outputs, name: str, parts: Collection[str]) -> None:
    """Refuses rows of which the model computed no number in the ``parts`` that are read; ``name`` is what they are."""
    for part in sorted(parts):
        values = getattr(outputs, part)
        if values is None:
            continue
        # A logit of minus infinity says that a class is impossible.
        fits = values.isfinite() | (values.isneginf() if part == "logits" else False)
        if not fits.all():
            row = int((~fits.all(dim=1)).nonzero()[0])
            raise ValueError(f"row {row} of {name} has NaN or infinite {part}; leave it out, or mend the model")


def rows_at(X: Any, index: NDArray[np.intp]) -> Any:
    """Some of the rows of arrays, data frames, lists or ``Outputs``."""
    return X.take(index) if isinstance(X, Outputs) else _safe_indexing(X, index)


def _features(classifier: Any, X: Any, features: Layer) -> Any:
    if isinstance(features, str):
        raise ValueError(f"features names a layer, {features!r}, but {type(classifier).__name__} has no layers")
    if callable(features):
        return features(X)
    model = unwrapped(classifier)
    rows = model[:-1].transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X
    dense: Any = rows.toarray() if issparse(rows) else rows  # type: ignore[attr-defined] # every sparse matrix has it
    return check_array(dense, dtype=np.float64, input_name="X", ensure_all_finite=False)


def _compares_pairs(classifier: Any) -> bool:
    """Whether each column of ``decision_function`` compares two classes; of three classes there are three pairs."""
    classifier = unwrapped(classifier)
    if isinstance(classifier, Pipeline):
        return _compares_pairs(classifier[-1])
    return len(classifier.classes_) == 3 and getattr(classifier, "decision_function_shape", None) == "ovo"


_SMALLEST = 1e-12
