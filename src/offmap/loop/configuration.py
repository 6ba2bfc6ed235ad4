"""The settings of a world as JSON: an unfitted classifier by its class and its parameters, and numbers."""

import copy
from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator

from offmap import parameters
from offmap.catalog import methods, public_class
from offmap.openset.incremental import IncrementalClassifier
from offmap.parameters import Count, Natural, Proportion
from offmap.persist import public_path

_ESTIMATOR = "$estimator"
_PLAIN = (str, int, float, bool, type(None))


def settings_of(
    classifier: Any, *, alpha: float | None, review: float, min_group: int, reassign: bool, seed: int
) -> dict[str, Any]:
    """What a world is made with, checked, as the first entry of its journal keeps it."""
    parameters.require("review", review, Proportion)
    parameters.require("min_group", min_group, Count)
    parameters.require("reassign", reassign, bool)
    parameters.require("seed", seed, Natural)
    chosen = copy.deepcopy(require_incremental(classifier))
    chosen.set_params(alpha=chosen.alpha if alpha is None else alpha, **chosen.learning_parameters)
    if chosen.random_state is None:
        chosen.set_params(random_state=seed)
    return {
        "classifier": describe(chosen),
        "review": float(review),
        "min_group": int(min_group),
        "reassign": reassign,
        "seed": int(seed),
    }


def describe(estimator: BaseEstimator) -> dict[str, Any]:
    """The class and the parameters of an estimator, those of an encoder inside included.

    Example:
        >>> from offmap.openset import AnalyticClassifier
        >>> described = describe(AnalyticClassifier(width=500))
        >>> described["class"], restore(described)
        ('offmap.openset.AnalyticClassifier', AnalyticClassifier(width=500))
    """
    path = public_path(type(estimator))
    if path is None:
        raise ValueError(f"{type(estimator).__name__} cannot be kept in a folder: only Offmap's own estimators can")
    parameters.check(estimator)
    return {"class": path, "parameters": {name: _plain(name, value) for name, value in _own(estimator).items()}}


def restore(described: Mapping[str, Any]) -> Any:
    """The unfitted estimator again."""
    cls = public_class(described["class"])
    if cls is None:
        raise ValueError(f"the classifier is a {described['class']}, which this release does not have")
    return cls(**{name: _restored(value) for name, value in described["parameters"].items()})


def require_incremental(classifier: Any) -> IncrementalClassifier:
    """Refuses a classifier that cannot learn new classes."""
    if isinstance(classifier, IncrementalClassifier):
        if classifier.calibration == "cv" or classifier.by_class or classifier.confidence is not None:
            raise ValueError(
                "classifier must have calibration as a share, by_class=None and confidence=None: audit rows set the "
                "threshold for all classes together"
            )
        return classifier
    if isinstance(classifier, str | type):
        raise ValueError(f"classifier must be an unfitted classifier, as AnalyticClassifier(); got {classifier!r}")
    able = [method.cls.__name__ for method in methods() if issubclass(method.cls, IncrementalClassifier)]
    raise ValueError(
        f"classifier must be able to learn new classes, as {' and '.join(able)} can; a {type(classifier).__name__} "
        "must be fitted anew for each class"
    )


def _own(estimator: BaseEstimator) -> dict[str, Any]:
    return dict(estimator.get_params(deep=False))


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, BaseEstimator):
        return {_ESTIMATOR: describe(value)}
    if isinstance(value, tuple | list):
        return [_plain(name, item) for item in value]
    if not isinstance(value, _PLAIN):
        raise ValueError(f"the parameter {name} is a {type(value).__name__}; the folder keeps plain values only")
    return value


def _restored(value: Any) -> Any:
    if isinstance(value, Mapping):
        return restore(value[_ESTIMATOR])
    return tuple(map(_restored, value)) if isinstance(value, list) else value
