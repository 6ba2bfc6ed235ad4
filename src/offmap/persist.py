"""Save and load fitted estimators: one safetensors file, metadata in JSON, never pickle.

A file holds the class, its parameters but for functions, the versions it was made with, and every fitted attribute
(names that end in ``_``). Networks are stored as their tensors: loading builds them with the estimator's ``_build``
and fills them. Classes are looked up among the public ones only (``offmap.catalog``), which ``load`` passes in.
"""

import os
import platform
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from sklearn.base import BaseEstimator
from torch import nn

from offmap import foreign_parts, tensorfile
from offmap.parameters import check
from offmap.random_state import local_seed
from offmap.tensorfile import TensorFileError

SCHEMA = 1
_PARTS = {"class", "parameters", "versions", "attributes", "modules"}
# Marks an estimator inside another in the file.
_ESTIMATOR = "$estimator"
# Finds a public class by its path, or returns None.
FindClass = Callable[[str], Any]


class ModelFileError(ValueError):
    """A model file that cannot be loaded; the message says why."""


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Writes a fitted estimator to ``path``; a kill while writing leaves the old file whole."""
    classes: dict[str, type] = {}
    content = {"schema": SCHEMA, "versions": _versions()} | _content(estimator, classes)
    _require_loadable(content, classes.get)
    try:
        tensorfile.write(path, content)
    except TypeError as error:
        raise TypeError(f"{error}; set_params changes a parameter without a new fit") from None


def _require_loadable(content: dict[str, Any], find_class: FindClass) -> None:
    """Refuses a model whose parameters were changed since the fit to ones that its networks do not fit."""
    try:
        _restored(content, None, find_class)
    except ModelFileError as error:
        raise ValueError(f"the model could not be loaded again, so it was not saved: {error}; fit it anew") from None


def public_path(cls: type) -> str | None:
    """The path ``offmap.<package>.<Class>`` of a class that a package of Offmap exports; None for others.

    Example:
        >>> from offmap.calibration import Promise
        >>> public_path(Promise), public_path(dict)
        ('offmap.calibration.Promise', None)
    """
    parts = cls.__module__.split(".")
    for end in range(2, len(parts)):
        path = ".".join(parts[:end])
        package = sys.modules[path]
        if cls.__name__ in getattr(package, "__all__", ()) and getattr(package, cls.__name__) is cls:
            return f"{path}.{cls.__name__}" if parts[0] == "offmap" else None
    return None


def _content(estimator: Any, classes: dict[str, type]) -> dict[str, Any]:
    """Class, parameters and fitted state, also of estimators inside; adds the classes met to ``classes``."""
    path = public_path(type(estimator))
    if path is None:
        raise TypeError(f"{type(estimator).__name__} cannot be saved: only Offmap's own estimators can be loaded again")
    check(estimator)
    classes[path] = type(estimator)
    modules = _modules(estimator)
    attributes = {name: value for name, value in vars(estimator).items() if _is_fitted_name(name)}
    return {
        "class": path,
        "parameters": _taken_apart(_without_functions(estimator.get_params(deep=False)), classes),
        "attributes": _taken_apart({name: v for name, v in attributes.items() if name not in modules}, classes),
        "modules": {name: dict(module.state_dict()) for name, module in modules.items()},
    }


def _without_functions(values: dict[str, Any]) -> dict[str, Any]:
    """A file holds no code: whoever needs a function, such as a log density, gives it again."""
    return {
        name: None if callable(value) and not isinstance(value, nn.Module) else value for name, value in values.items()
    }


def _taken_apart(values: dict[str, Any], classes: dict[str, type]) -> dict[str, Any]:
    return {name: _as_content(value, classes) for name, value in values.items()}


def _as_content(value: Any, classes: dict[str, type]) -> Any:
    """The content of an estimator inside another, alone or in a tuple; any other value as it is."""
    if isinstance(value, tuple):
        return tuple(_as_content(item, classes) for item in value)
    if (part := foreign_parts.packed(value, classes)) is not None:
        return part
    return {_ESTIMATOR: _content(value, classes)} if isinstance(value, BaseEstimator) else value


def _put_together(values: dict[str, Any], device: str | None, find_class: FindClass) -> dict[str, Any]:
    return {name: _from_content(value, device, find_class) for name, value in values.items()}


def _from_content(value: Any, device: str | None, find_class: FindClass) -> Any:
    """The inverse of ``_as_content``."""
    if isinstance(value, tuple):
        return tuple(_from_content(item, device, find_class) for item in value)
    if foreign_parts.is_packed(value):
        return foreign_parts.unpacked(value, find_class)
    inside = isinstance(value, dict) and _ESTIMATOR in value
    return _rebuilt(value[_ESTIMATOR], device, find_class) if inside else value


def restore(path: str | os.PathLike[str], device: str | None, find_class: FindClass) -> Any:
    """Restores what ``save`` wrote, or raises a ``ModelFileError`` that says why it cannot.

    Args:
        path: The file.
        device: Where torch computes, if not where the model was fitted.
        find_class: Finds a public class by the path that the file names.
    """
    try:
        return _restored(tensorfile.read(path), device, find_class)
    except TensorFileError as error:
        raise ModelFileError(f"cannot load the model: {error}") from None
    except ModelFileError as error:
        raise ModelFileError(f"cannot load {os.fspath(path)}: {error}") from None


def _restored(content: Any, device: str | None, find_class: FindClass) -> Any:
    _require_known_schema(content)
    try:
        return _rebuilt(content, device, find_class)
    except ModelFileError:
        raise
    except Exception as error:  # what a file says may be wrong in any way, and must end in one error
        reason = " ".join(str(error).split())
        raise ModelFileError(f"its content does not fit {content['class']}: {reason}") from None


def _rebuilt(content: Any, device: str | None, find_class: FindClass) -> Any:
    cls = find_class(str(content["class"]))
    if cls is None:
        raise ModelFileError(f"it holds a {content['class']!r}, which is not an estimator of this release")
    _require_fitted(cls, content)
    estimator = cls(**_put_together(content["parameters"], device, find_class))
    if device is not None and "device" in content["parameters"]:
        estimator.set_params(device=device)
    check(estimator)
    for name, value in _put_together(content["attributes"], device, find_class).items():
        if not _is_fitted_name(name):
            raise ModelFileError(f"it holds {name}, which no fit leaves")
        setattr(estimator, name, value)
    # Initial weights are drawn at random, which must not move the caller's random state.
    with local_seed(0):
        # A model that consists of one model per fold has no networks of its own.
        if not hasattr(estimator, "members_"):
            getattr(estimator, "_build", lambda: None)()
    modules = _modules(estimator)
    if modules.keys() != content["modules"].keys():
        raise ModelFileError(f"its networks should be {sorted(modules)}, but are {sorted(content['modules'])}")
    for name, module in modules.items():
        _fill(module, name, content["modules"][name])
    return estimator


def _require_known_schema(content: Any) -> None:
    schema = content.get("schema") if isinstance(content, dict) else None
    if not isinstance(schema, int) or schema < 1:
        raise ModelFileError("it is not a model")
    if schema > SCHEMA:
        wrote = f"it was written with {content.get('versions')}"
        raise ModelFileError(f"its schema is {schema}, this release reads up to {SCHEMA}; {wrote}")
    if missing := sorted(_PARTS - content.keys()):
        raise ModelFileError(f"it lacks {', '.join(missing)}")


def _require_fitted(cls: Any, content: Any) -> None:
    if missing := sorted(getattr(cls, "always_fitted", frozenset()) - content["attributes"].keys()):
        raise ModelFileError(f"it lacks {', '.join(missing)}")


def _fill(module: nn.Module, name: str, tensors: Any) -> None:
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise ModelFileError(f"the tensors of {name!r} do not fit the network: {reason}") from None
    module.eval()


def _modules(estimator: Any) -> dict[str, nn.Module]:
    found = vars(estimator).items()
    return {name: value for name, value in found if _is_fitted_name(name) and isinstance(value, nn.Module)}


def _is_fitted_name(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _versions() -> dict[str, str]:
    packages = ("offmap", "torch", "numpy", "scikit-learn")
    return {"python": platform.python_version()} | {package: version(package) for package in packages}
