"""How a fitted model scores rows, as a function of tensors that can be traced; or why it cannot."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from offmap.base import Detector, OpenSetClassifier
from offmap.calibration import Calibrated, Guarded
from offmap.collaborative.base import EntityDetector
from offmap.data import TableEncoder, TextEncoder
from offmap.density import NearestNeighborDetector, TextureDetector, VAEDetector
from offmap.density.neighbor_distance import NeighborDistance
from offmap.export.guarded import guarded_scores, probes_of
from offmap.export.number_columns import NumberColumns, other_columns
from offmap.export.substitutes import squared_distances

# Maps inputs to the probabilities of the known classes, None for a detector, and the novelty.
Scores = Callable[..., tuple[Tensor | None, Tensor]]


class CannotExport(ValueError):
    """A model that has no form as ONNX; the message says why, and what to do instead."""


def require_exportable(model: Any) -> None:
    """Raises a ``CannotExport`` for models whose scoring is known to have no form as tensor algebra.

    Example:
        >>> from offmap.openset import LOFClassifier
        >>> from sklearn.datasets import load_iris
        >>> model = LOFClassifier(epochs=1, calibration=0.3, random_state=0).fit(*load_iris(return_X_y=True))
        >>> require_exportable(model)
        Traceback (most recent call last):
        offmap.export.scoring.CannotExport: LOFClassifier cannot be exported as ONNX, because ...
    """
    if reason := _obstacle(model):
        raise CannotExport(
            f"{type(model).__name__} cannot be exported as ONNX, because {reason}; --format mlflow (export_mlflow) "
            "wraps any saved model"
        )


def _obstacle(model: Any) -> str:
    if isinstance(model, EntityDetector):
        return "it scores pairs of a row and an entity, whose set changes after the fit"
    if isinstance(model, Calibrated):
        return "its estimator belongs to another library, which must export it itself"
    if not isinstance(model, Detector | OpenSetClassifier | Guarded):
        return "it does not score rows"
    if getattr(model, "members_", ()):
        return 'calibration="cv" makes one model per fold; fit it with a share of held-out rows'
    if getattr(model, "class_promise_", None) is not None:
        return "by_class has one table of p-values per class; fit it with by_class=None"
    if isinstance(model, TextureDetector):
        return _UNTRACEABLE["texture"]
    if isinstance(model, VAEDetector) and model._main_score.name in _UNTRACEABLE:
        return f"its score {model._main_score.name!r}: {_UNTRACEABLE[model._main_score.name]}"
    if hasattr(model, "_outliers"):
        return "the local outlier factor is a search by scikit-learn"
    return _encoder_obstacle(getattr(model, "encoder_", None))


def _encoder_obstacle(encoder: Any) -> str:
    if isinstance(encoder, TableEncoder):
        others = other_columns(encoder)
        return f"its TableEncoder reads columns that are not numbers ({'; '.join(others)})" if others else ""
    if encoder is not None and not isinstance(encoder, TextEncoder):
        return f"its {type(encoder).__name__} reads objects, which are not tensors; encode the rows before"
    if encoder is not None and encoder.ngram_weight:
        return "its TextEncoder counts letters (ngram_weight), which no tensor operation does; use mlflow"
    return ""


def scores_of(model: Any) -> Scores:
    """The function that scores rows of the model's own shape, ``(n, d)`` or ``(n, h, w, c)``."""
    if isinstance(model, Guarded):
        return guarded_scores(model)
    if isinstance(model, NearestNeighborDetector):
        return lambda X: (None, neighbor_distance(model._distance, model.scaler_(as_rows(model, X)).double()))
    if isinstance(model, Detector):
        return lambda X: (None, model._novelty(as_rows(model, X)))
    return lambda X: tuple(model._classify(as_rows(model, X)))


def examples_of(model: Any) -> dict[str, Tensor]:
    """Two rows of each input of a model, by its name."""
    if isinstance(model, Guarded):
        # Twice the same row: of one row alone, the exporter would take the number for a constant.
        return {name: torch.cat([rows[:1], rows[:1]]) for name, rows in probes_of(model).items()}
    table = table_encoder(model)
    shape = model.input_shape_ if table is None else (len(table.columns_),)
    return {"X": torch.rand(2, *shape, dtype=input_dtype(model))}


def table_encoder(model: Any) -> TableEncoder | None:
    """The encoder of a model that reads the columns of a table."""
    encoder = getattr(model, "encoder_", None)
    return encoder if isinstance(encoder, TableEncoder) else None


def input_dtype(model: Any) -> torch.dtype:
    """The precision of the input: double where single precision might not hold the columns."""
    double = hasattr(model, "column_shift_") or table_encoder(model) is not None
    return torch.float64 if double else torch.float32


def as_rows(model: Any, X: Tensor) -> Tensor:
    """Rows as the method sees them: encoded, in the units that it computes in, images with channels first or flat."""
    if (table := table_encoder(model)) is not None:
        X = NumberColumns(table)(X)
    if hasattr(model, "column_shift_"):
        X = (X - torch.from_numpy(model.column_shift_)) / torch.from_numpy(model.column_scale_)
    X = X.float()
    if X.ndim == 4:
        return X.permute(0, 3, 1, 2) if model.spatial else X.flatten(1)
    return X


def neighbor_distance(distance: NeighborDistance, rows: Tensor) -> Tensor:
    """The distance to the nearest reference rows, found by one product of all rows with all reference rows.

    Example:
        >>> distance = NeighborDistance.fit(np.array([[0.0], [1.0], [2.0]]))
        >>> neighbor_distance(distance, torch.tensor([[2.0], [5.0]], dtype=torch.float64))
        tensor([1., 3.], dtype=torch.float64)
    """
    reference, count = torch.from_numpy(distance.reference), distance.n_neighbors
    finite = rows.isfinite().all(dim=1, keepdim=True)
    rows = torch.where(finite, rows, torch.zeros_like(rows))
    kept = min(count + 1, len(reference))
    places = squared_distances(rows, reference).topk(kept, dim=1, largest=False).indices
    # Measured from differences: the product has no digits left where the distance is small.
    lengths = (rows[:, None] - reference[places]).square().sum(dim=2).sqrt()
    found = lengths.topk(kept, dim=1, largest=False).values
    is_reference = found[:, :1] <= _ROUNDING * found[:, -1:]
    nearest = torch.where(is_reference, found[:, kept - count :], found[:, :count])
    return torch.where(finite[:, 0], nearest.mean(dim=1) / distance.typical, torch.inf)


def label_table(model: Any) -> np.ndarray[Any, Any] | None:
    """The known classes and, last, what novel rows are called; None for a detector."""
    if not hasattr(model, "classes_"):
        return None
    names = [*model.classes_.tolist(), model.unknown_label_]
    return np.array(names, dtype=object if isinstance(names[0], str) else None)


# Of scikit-learn's search: a row that is so much nearer to its first neighbour than to the last is that row itself.
_ROUNDING = 1e-3
_UNTRACEABLE = {
    "texture": "histograms of pixels are counts, for which ONNX has no operator",
    "nearest": "neighbours are searched for by scikit-learn",
    "complexity": "images are compressed, which is no tensor algebra",
    "regret": "a copy of the encoder is trained for each row",
}
