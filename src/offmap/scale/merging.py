"""Merging models that were fitted to parts of the rows into the model of all rows."""

from collections.abc import Sequence
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import joblib
import numpy as np
from sklearn.utils.validation import check_is_fitted

from offmap.collaborative.base import EntityDetector
from offmap.openset.incremental import IncrementalClassifier

# Parameters in which shards may differ.
_MAY_DIFFER = ("random_state", "device", "encoder")


@runtime_checkable
class Mergeable(Protocol):
    """A model that is a sum over rows."""

    def merged_with(self, others: Sequence[Self]) -> Self:
        """The model of the rows of this model and of others."""
        ...


Model = TypeVar("Model", bound=Any)


def merge(models: Sequence[Model], X: Any = None, y: Any = None) -> Model:
    """Merges models that were fitted on parts of the rows into one, as if it had been fitted on all of them.

    It is exact up to rounding, since these methods are sums over rows: ``MahalanobisDetector`` (shards by
    ``fit_shard``), ``NearestNeighborDetector`` (by ``fit``), ``AnalyticClassifier`` and ``ClosedFormDetector`` (by
    ``fit_shard`` of one fitted model, whose features they share). Entities and classes may be spread over shards.

    The scores that the shards gave to their held-out rows say nothing about the merged model, which scores them
    differently. ``AnalyticClassifier`` keeps held-out rows and scores those of all shards again. For the others, give
    rows for the threshold that no shard has seen: the promised rate holds for rows like these.

    Args:
        models: Fitted shards, of one class and with the same parameters.
        X: Normal rows that no shard was fitted to, which set the threshold.
        y: The entities of these rows, or their classes with ``by_class``.

    Example:
        >>> from offmap.density import MahalanobisDetector
        >>> X = np.random.default_rng(0).normal(size=(900, 3))
        >>> shards = [MahalanobisDetector(random_state=0).fit_shard(part) for part in np.split(X[:600], 3)]
        >>> merge(shards, X[600:]).predict([[0.0, 0.1, -0.2], [30.0, 30.0, 30.0]])
        array([ 1, -1])
    """
    first, *others = _checked(models)
    entity = isinstance(first, EntityDetector)
    if X is None and not isinstance(first, IncrementalClassifier):
        wanted = "X and y, the rows and their entities" if entity else "X, the rows"
        raise ValueError(f"merge needs {wanted} that no shard was fitted to: they set the threshold")
    merged = first.merged_with(others)
    if X is None:
        return merged
    return merged.recalibrate(X, y) if entity or y is not None else merged.recalibrate(X)


def _checked(models: Sequence[Model]) -> list[Model]:
    found = list(models)
    if not found:
        raise ValueError("models must hold at least one fitted model")
    first = found[0]
    if not isinstance(first, Mergeable):
        raise ValueError(
            f"models holds a {type(first).__name__}, which is no sum over rows; train it on several processes "
            "instead (torchrun)"
        )
    for place, model in enumerate(found):
        if type(model) is not type(first):
            raise ValueError(
                f"models must be of one class; 0 is a {type(first).__name__} and {place} a {type(model).__name__}"
            )
        check_is_fitted(model, "promise_")
        _require_alike(first, model, place)
    return found


def _require_alike(first: Any, model: Any, place: int) -> None:
    """Raises a ``ValueError`` if a model does not compute as the first one does."""
    if hasattr(model, "members_"):
        raise ValueError(f'models[{place}] consists of folds; fit shards with calibration as a share, not "cv"')
    ours, theirs = (each.get_params(deep=False) for each in (first, model))
    differing = [name for name in ours if name not in _MAY_DIFFER and ours[name] != theirs[name]]
    if differing:
        raise ValueError(f"models must have the same parameters; {', '.join(differing)} of models[{place}] differ")
    if tuple(first.input_shape_) != tuple(model.input_shape_):
        shapes = f"{first.input_shape_} and, in models[{place}], {model.input_shape_}"
        raise ValueError(f"models must be of rows of one shape; got {shapes}")
    for name in ("feature_names_in_", "column_shift_", "column_scale_"):
        if not np.array_equal(getattr(first, name, ()), getattr(model, name, ())):
            raise ValueError(f"models[{place}] has other columns, or units of columns, than models[0] ({name} differs)")
    if joblib.hash(getattr(first, "encoder_", None)) != joblib.hash(getattr(model, "encoder_", None)):
        raise ValueError(
            f"models[{place}] has another encoder than models[0]; encode the rows before, or use fit_shard"
        )
