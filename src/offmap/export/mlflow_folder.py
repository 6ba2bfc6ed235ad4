"""Writes a fitted model as a folder that MLflow loads and serves."""

import os
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from offmap import __version__
from offmap.base import OpenSetClassifier
from offmap.data import TextEncoder
from offmap.estimator import encoder_of
from offmap.export.columns import Columns
from offmap.export.folders import new_folder
from offmap.export.pyfunc import _load_pyfunc
from offmap.onnx_graphs import required
from offmap.persist import ModelFileError

FILE = "model.safetensors"
_LOADER = "offmap.export.pyfunc"
_PINNED = ("torch", "numpy", "scikit-learn", "pandas", "safetensors")


def export_mlflow(model: Any, folder: str | os.PathLike[str]) -> None:
    """Writes a fitted model as an MLflow model around its safetensors file, without pickle.

    ``mlflow.pyfunc.load_model(folder).predict(table)`` returns a table with one line per row: novelty, p-value, whether
    it is novel and, from a classifier, label and closest class. The signature and the requirements are written with it.

    Args:
        model: Any fitted model that can be saved and loaded by itself.
        folder: A new or empty folder.

    Raises:
        ValueError: The file cannot be loaded by itself, since it needs a model of another library or a name that must
            be trusted first: a server has nobody to ask.

    Example:
        >>> import tempfile
        >>> from offmap.density import MahalanobisDetector
        >>> detector = MahalanobisDetector(random_state=0).fit(np.random.default_rng(0).normal(size=(300, 2)))
        >>> with tempfile.TemporaryDirectory() as place:
        ...     export_mlflow(detector, f"{place}/served")
        ...     "MLmodel" in os.listdir(f"{place}/served")
        True
    """
    check_is_fitted(model, "promise_")
    with new_folder(folder) as fresh, tempfile.TemporaryDirectory() as place:
        path = Path(place) / FILE
        model.save(path)
        _require_loadable(path, model)
        with warnings.catch_warnings():
            # Hints on how to use MLflow, which are not about this model.
            warnings.simplefilter("ignore")
            _mlflow().pyfunc.save_model(
                path=fresh,
                loader_module=_LOADER,
                data_path=str(path),
                signature=signature_of(model),
                pip_requirements=requirements_of(model),
            )


def requirements_of(model: Any) -> list[str]:
    """The packages, with versions, that scoring needs.

    Example:
        >>> from offmap.density import ECODDetector
        >>> requirements_of(ECODDetector())[0].partition("==")[0]
        'offmap'
    """
    encoder = encoder_of(model)
    extras = ["text"] if isinstance(encoder, TextEncoder) else []
    extras += ["export"] if isinstance(encoder, TextEncoder) and encoder.backend == "onnx" else []
    own = f"offmap[{','.join(extras)}]" if extras else "offmap"
    return [f"{own}=={__version__}", *(f"{name}=={version(name).partition('+')[0]}" for name in _PINNED)]


def signature_of(model: Any) -> Any:
    """MLflow's signature of a model: the columns or the tensor that it takes, and the columns that it returns."""
    types = _mlflow().types
    return _mlflow().models.ModelSignature(inputs=_inputs(model, types), outputs=_outputs(model, types))


def _inputs(model: Any, types: Any) -> Any:
    columns, column = Columns.of(model), types.schema.ColSpec
    entity = [] if columns.entity is None else [column("string" if _text_ids(model) else "long", columns.entity)]
    if columns.text is not None:
        return types.Schema([column("string", columns.text), *entity])
    if columns.mixed:
        features = [column(types.schema.AnyType(), name, required=False) for name in columns.features or ()]
        return types.Schema([*features, *entity])
    if columns.features is not None:
        return types.Schema([*(column("double", name) for name in columns.features), *entity])
    if len(model.input_shape_) == 1:
        return types.Schema([column("double")] * model.input_shape_[0])
    return types.Schema([types.schema.TensorSpec(np.dtype(np.float32), (-1, *model.input_shape_))])


def _outputs(model: Any, types: Any) -> Any:
    kinds = {"novelty": "double"} | ({"p_value": "double"} if model.promise_.has_rows else {}) | {"novel": "boolean"}
    if isinstance(model, OpenSetClassifier):
        label = {"i": "long", "f": "double"}.get(model.classes_.dtype.kind, "string")
        kinds |= {"label": label, "closest": label}
    return types.Schema([types.schema.ColSpec(kind, name) for name, kind in kinds.items()])


def _text_ids(model: Any) -> bool:
    return np.asarray(model.entity_ids_).dtype.kind not in "iu"


def _require_loadable(path: Path, model: Any) -> None:
    try:
        _load_pyfunc(path)
    except ModelFileError as error:
        reason = str(error).partition(": ")[2]
        raise ValueError(f"{type(model).__name__} cannot be exported for MLflow: {reason}") from None


def _mlflow() -> Any:
    # Without this MLflow reports its use to its makers; whoever wants that sets the variable.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    return required("mlflow")
