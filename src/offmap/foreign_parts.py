"""Parts of a model that other libraries made: kept as numbers, texts and names, never as code.

A transformer of scikit-learn is kept by its parameters and fitted arrays, if its class is in a fixed list. A
``torch.nn.Module`` is kept as its weights and the import path of its class, which is imported only with the consent of
whoever loads the file.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from torch import nn

__all__ = ["foreign_class", "is_packed", "packed", "unpacked"]

_FOREIGN = "$foreign"
_SKLEARN = {
    "sklearn.compose": ("ColumnTransformer",),
    "sklearn.decomposition": ("PCA", "TruncatedSVD"),
    "sklearn.feature_extraction.text": ("CountVectorizer", "HashingVectorizer", "TfidfTransformer", "TfidfVectorizer"),
    "sklearn.feature_selection": ("VarianceThreshold",),
    "sklearn.impute": ("SimpleImputer",),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.preprocessing": (
        "KBinsDiscretizer",
        "MaxAbsScaler",
        "MinMaxScaler",
        "Normalizer",
        "OneHotEncoder",
        "OrdinalEncoder",
        "PolynomialFeatures",
        "PowerTransformer",
        "QuantileTransformer",
        "RobustScaler",
        "StandardScaler",
    ),
}
_DECLARED = {f"{package}.{name}": package for package, names in _SKLEARN.items() for name in names}
# Parameters with which these classes would read or write files that the model file names.
_INERT = {"memory": None, "input": "content"}
_TYPES = {f"numpy.{name}": getattr(np, name) for name in ("float32", "float64", "int32", "int64", "object_")}
FindClass = Callable[[str], Any]


def foreign_class(path: str, trusted: Sequence[str]) -> Any | None:
    """The class of another library at an import path: a declared one, or one that the user trusts; else None.

    Example:
        >>> foreign_class("sklearn.preprocessing.StandardScaler", []).__name__, foreign_class("os.system", [])
        ('StandardScaler', None)
    """
    module, _, name = path.rpartition(".")
    if path not in _DECLARED and path not in trusted:
        return None
    return getattr(importlib.import_module(module), name, None)


def packed(value: Any, classes: dict[str, type]) -> Any | None:
    """A foreign part as plain values, or None if it is not one that can be kept; adds its class to ``classes``."""
    if isinstance(value, nn.Module):
        path = f"{type(value).__module__}.{type(value).__qualname__}"
        classes[path] = type(value)
        return {_FOREIGN: "module", "class": path, "weights": dict(value.state_dict())}
    declared = _declared_path(value)
    if declared is None:
        return None
    classes[declared] = type(value)
    state = {name: item for name, item in vars(value).items() if name != "_sklearn_output_config"}
    return {_FOREIGN: "sklearn", "class": declared, "state": _packed_dict(state, classes)}


def is_packed(value: Any) -> bool:
    """Whether a value of a file stands for a foreign part."""
    return isinstance(value, dict) and value.get(_FOREIGN) in ("module", "sklearn")


def unpacked(value: dict[str, Any], find_class: FindClass) -> Any:
    """The inverse of ``packed``; raises a ``ValueError`` that names a class without consent."""
    path = str(value["class"])
    if value[_FOREIGN] == "sklearn" and path not in _DECLARED:
        raise ValueError(f"it holds a {path}, which is not among the classes of scikit-learn that can be loaded")
    cls = find_class(path)
    if cls is None:
        raise ValueError(
            f"its encoder is a {path}, which is not part of Offmap; if you trust this class, load the model with "
            f"trusted=[{path!r}], or --trust on the command line"
        )
    return _module(cls, path, value["weights"]) if value[_FOREIGN] == "module" else _estimator(cls, value, find_class)


def _module(cls: Any, path: str, weights: Any) -> nn.Module:
    if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
        raise ValueError(f"{path} is not a torch.nn.Module")
    try:
        module = cls()
    except TypeError as error:
        raise ValueError(f"{path} must be a class that is made without arguments: {error}") from None
    module.load_state_dict(weights)
    return module.eval()


def _estimator(cls: Any, value: dict[str, Any], find_class: FindClass) -> Any:
    made = cls.__new__(cls)
    for name, item in value["state"].items():
        found = _unpacked_value(item, find_class)
        if name in _INERT and found != _INERT[name]:
            raise ValueError(f"{value['class']} has {name}={found!r}, with which it would use files")
        setattr(made, str(name), found)
    return made


def _declared_path(value: Any) -> str | None:
    name = type(value).__name__
    for path, package in _DECLARED.items():
        if path == f"{package}.{name}" and getattr(importlib.import_module(package), name) is type(value):
            return path
    return None


def _packed_dict(values: dict[Any, Any], classes: dict[str, type]) -> dict[Any, Any]:
    return {name: _packed_value(item, classes) for name, item in values.items()}


def _packed_value(value: Any, classes: dict[str, type]) -> Any:
    """Values that a model file has no word for, inside lists, tuples and dicts too."""
    if isinstance(value, BaseEstimator):
        if (part := packed(value, classes)) is None:
            raise TypeError(f"{type(value).__name__} cannot be saved inside an encoder: it is not a declared class")
        return part
    if isinstance(value, slice):
        return {"$slice": [value.start, value.stop, value.step]}
    if isinstance(value, type) and f"numpy.{value.__name__}" in _TYPES:
        return {"$type": f"numpy.{value.__name__}"}
    if isinstance(value, np.dtype):
        return {"$dtype": value.str}
    if isinstance(value, np.ndarray) and value.dtype == object:
        return {"$objects": [_packed_value(item, classes) for item in value.ravel().tolist()], "shape": [*value.shape]}
    if isinstance(value, list | tuple):
        items = [_packed_value(item, classes) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return _packed_dict(value, classes) if isinstance(value, dict) else value


def _unpacked_value(value: Any, find_class: FindClass) -> Any:
    if isinstance(value, list | tuple):
        items = [_unpacked_value(item, find_class) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if not isinstance(value, dict):
        return value
    if is_packed(value):
        return unpacked(value, find_class)
    if "$slice" in value:
        return slice(*value["$slice"])
    if "$type" in value:
        return _TYPES[value["$type"]]
    if "$dtype" in value:
        return np.dtype(value["$dtype"])
    if "$objects" in value:
        flat = np.empty(len(value["$objects"]), dtype=object)
        flat[:] = [_unpacked_value(item, find_class) for item in value["$objects"]]
        return flat.reshape(value["shape"])
    return {name: _unpacked_value(item, find_class) for name, item in value.items()}
