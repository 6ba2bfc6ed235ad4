"""Where the normal rows come from that rows are compared with."""

from typing import Any

import numpy as np
import pandas as pd

from offmap.arrays import unshifted
from offmap.calibration.cv import first_member
from offmap.calibration.foreign import row_count
from offmap.density import NearestNeighborDetector


def reference_rows(model: Any, reference: Any) -> Any:
    """The rows given by the user, or those that the model keeps; a ``ValueError`` if there are none.

    Args:
        model: A fitted model.
        reference: Normal rows, or None.
    """
    if reference is not None:
        if row_count(reference) < 1:
            raise ValueError("reference must hold at least one normal row; got none")
        return reference
    kept = _kept_rows(scoring_model(model))
    if kept is None:
        raise ValueError(
            f"reference must be given: {type(model).__name__} {_why_none(scoring_model(model))}; pass normal rows "
            "as the model takes them, such as reference=X_train, or --reference TRAIN.csv on the shell"
        )
    return kept


def scoring_model(model: Any) -> Any:
    """The model whose novelty it is: what ``Calibrated`` wraps, or the model itself."""
    return scoring_model(model.estimator_) if hasattr(model, "estimator_") else model


def fitted_part(model: Any) -> Any:
    """The model that was fitted to the rows, which knows their shape and encoder; of folds that of the first."""
    first = first_member(model)
    return fitted_part(first.estimator_) if hasattr(first, "estimator_") else first


def _kept_rows(model: Any) -> Any:
    """The training rows in the units that the user gave, of folds those of the first; an encoder cannot be undone."""
    model = first_member(model)
    if not isinstance(model, NearestNeighborDetector) or hasattr(model, "encoder_"):
        return None
    scaler = model.scaler_
    rows = unshifted(model, model.rows_ * scaler.scale.cpu().numpy() + scaler.mean.cpu().numpy())
    rows = rows.reshape(len(rows), *model.input_shape_)
    if rows.ndim == 4:
        return np.clip(rows, 0.0, 1.0)
    names = getattr(model, "feature_names_in_", None)
    return rows if names is None else pd.DataFrame(rows, columns=names)


def _why_none(model: Any) -> str:
    if isinstance(first_member(model), NearestNeighborDetector):
        return "keeps its training rows only as its encoder has made them, which cannot be undone"
    return "keeps no training rows to compare with"


def sampled_places(reference: Any, most: int) -> np.ndarray:
    """Positions of all reference rows, or of ``most`` of them drawn at random, the same ones at each call."""
    count = row_count(reference)
    if count <= most:
        return np.arange(count)
    # At random, since rows may be sorted.
    return np.sort(np.random.default_rng(0).choice(count, most, replace=False))
