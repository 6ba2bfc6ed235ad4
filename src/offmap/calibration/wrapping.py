"""What parts share that are given a fitted model and decide in its place."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from offmap.arrays import FloatArray
from offmap.calibration.contract import PromisedModel
from offmap.labels import with_unknown
from offmap.verdict import Verdict


def require_plain_promise(model: Any, instead: str) -> None:
    """Refuses a model whose promise cannot be kept by other p-values than its own.

    Args:
        model: What the user gave as a model.
        instead: The end of the message for a promise that is not plain: what to do.
    """
    if not isinstance(model, PromisedModel):
        raise ValueError(
            f"model must be one of Offmap; put the {type(model).__name__} into Calibrated or Guarded first"
        )
    check_is_fitted(model, "promise_")
    if hasattr(model, "entity_ids_"):
        raise ValueError("model must be asked about rows alone; a model of entities is recalibrated instead")
    for name in ("confidence", "by_class"):
        if getattr(model, name, None) is not None:
            raise ValueError(f"model has {name}, which {instead}")


def feature_rows(name: str, X: ArrayLike) -> FloatArray:
    """Rows of finite numbers, one line per row; ``name`` is the argument that an error names."""
    try:
        rows = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be rows of numbers; encode texts first") from None
    if rows.ndim < 2 or not len(rows):
        raise ValueError(f"{name} must be (n, d) features of at least one row; got shape {rows.shape}")
    flat = rows.reshape(len(rows), -1)
    if len(wrong := np.flatnonzero(~np.isfinite(flat).all(axis=1))):
        raise ValueError(f"{name} holds NaN or infinity in row {wrong[0]}; fill or drop such rows")
    return flat


def decided(verdict: Verdict, model: Any, p_value: FloatArray, novel: NDArray[np.bool_]) -> Verdict:
    """The verdict of ``model`` with other p-values and decisions, and the labels that follow from them."""
    if verdict.closest is None:
        return replace(verdict, p_value=p_value, novel=novel)
    label = with_unknown(verdict.closest, novel, model.unknown_label_)
    return replace(verdict, p_value=p_value, novel=novel, label=label)
