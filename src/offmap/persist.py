"""Save and load fitted estimators: one safetensors file, metadata in JSON, never pickle.

A file holds the class, its parameters but for functions, the versions it was made with, and every fitted attribute
(names that end in ``_``). Networks are stored as their tensors: loading makes them anew with the estimator's ``_build``
and fills them.
"""

import os
import platform
from importlib.metadata import version
from typing import Any

from sklearn.base import BaseEstimator
from torch import nn

from offmap import tensorfile
from offmap.catalog import public_class, public_path
from offmap.parameters import check
from offmap.random_state import local_seed
from offmap.tensorfile import TensorFileError

SCHEMA = 1
_PARTS = {"class", "parameters", "versions", "attributes", "modules"}
# Marks an estimator inside another in the file.
_ESTIMATOR = "$estimator"


class ModelFileError(ValueError):
    """A model file that cannot be loaded; the message says why."""


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Writes a fitted estimator to ``path``; a kill while writing leaves the old file whole."""
    content = {"schema": SCHEMA, "versions": _versions()} | _content(estimator)
    _require_loadable(content)
    try:
        tensorfile.write(path, content)
    except TypeError as error:
        raise TypeError(f"{error}; set_params changes a parameter without a new fit") from None


def _require_loadable(content: dict[str, Any]) -> None:
    """Refuses a model whose parameters were changed since the fit to ones that its networks do not fit."""
    try:
        _restore(content, None)
    except ModelFileError as error:
        raise ValueError(f"the model could not be loaded again, so it was not saved: {error}; fit it anew") from None


def _content(estimator: Any) -> dict[str, Any]:
    """Class, parameters and fitted state; an encoder among them is taken apart likewise."""
    if public_class(public_path(type(estimator))) is not type(estimator):
        raise TypeError(f"{type(estimator).__name__} cannot be saved: only Offmap's own estimators can be loaded again")
    check(estimator)
    modules = _modules(estimator)
    attributes = {name: value for name, value in vars(estimator).items() if _is_fitted_name(name)}
    return {
        "class": public_path(type(estimator)),
        "parameters": _taken_apart(_without_functions(estimator.get_params(deep=False))),
        "attributes": _taken_apart({name: value for name, value in attributes.items() if name not in modules}),
        "modules": {name: dict(module.state_dict()) for name, module in modules.items()},
    }


def _without_functions(values: dict[str, Any]) -> dict[str, Any]:
    """A file holds no code: whoever needs a function, such as a log density, gives it again."""
    return {name: None if callable(value) else value for name, value in values.items()}


def _taken_apart(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _as_content(value) for name, value in values.items()}


def _as_content(value: Any) -> Any:
    """An estimator inside another, also in a tuple of them, as its content; any other value as it is."""
    if isinstance(value, tuple):
        return tuple(_as_content(item) for item in value)
    return {_ESTIMATOR: _content(value)} if isinstance(value, BaseEstimator) else value


def _put_together(values: dict[str, Any], device: str | None) -> dict[str, Any]:
    return {name: _from_content(value, device) for name, value in values.items()}


def _from_content(value: Any, device: str | None) -> Any:
    """The inverse of ``_as_content``."""
    if isinstance(value, tuple):
        return tuple(_from_content(item, device) for item in value)
    return _rebuilt(value[_ESTIMATOR], device) if isinstance(value, dict) and _ESTIMATOR in value else value


def load(path: str | os.PathLike[str], device: str | None = None) -> Any:
    """Restores what ``save`` wrote, or raises a ``ModelFileError`` that says why it cannot.

    Args:
        path: The file.
        device: Where torch is to work, if not where the model was fitted.

    Example:
        >>> import tempfile, numpy as np, offmap
        >>> from offmap.density import VAEDetector
        >>> detector = VAEDetector(epochs=1, random_state=0).fit(np.random.default_rng(0).normal(size=(200, 2)))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     detector.save(f"{folder}/model.safetensors")
        ...     offmap.load(f"{folder}/model.safetensors")
        VAEDetector(epochs=1, random_state=0)
    """
    try:
        return _restore(tensorfile.read(path), device)
    except TensorFileError as error:
        raise ModelFileError(f"cannot load the model: {error}") from None
    except ModelFileError as error:
        raise ModelFileError(f"cannot load {os.fspath(path)}: {error}") from None


def _restore(content: Any, device: str | None) -> Any:
    _require_known_schema(content)
    try:
        _require_fitted(content)
        return _rebuilt(content, device)
    except ModelFileError:
        raise
    except Exception as error:  # what a file says may be wrong in any way, and must end in one error
        reason = " ".join(str(error).split())
        raise ModelFileError(f"its content does not fit {content['class']}: {reason}") from None


def _rebuilt(content: Any, device: str | None) -> Any:
    estimator = _class_of(content["class"])(**_put_together(content["parameters"], device))
    if device is not None and hasattr(estimator, "device"):
        estimator.set_params(device=device)
    check(estimator)
    for name, value in _put_together(content["attributes"], device).items():
        if not _is_fitted_name(name):
            raise ModelFileError(f"it holds {name}, which no fit leaves")
        setattr(estimator, name, value)
    # The first weights of a network are drawn at random, which must not move the caller's random state.
    with local_seed(0):
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


def _require_fitted(content: Any) -> None:
    if missing := sorted(_class_of(content["class"]).always_fitted - content["attributes"].keys()):
        raise ModelFileError(f"it lacks {', '.join(missing)}")


def _fill(module: nn.Module, name: str, tensors: Any) -> None:
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise ModelFileError(f"the tensors of {name!r} do not fit the network: {reason}") from None
    module.eval()


def _class_of(path: object) -> Any:
    cls = public_class(str(path))
    if cls is None:
        raise ModelFileError(f"it holds a {path!r}, which is not an estimator of this release")
    return cls


def _modules(estimator: Any) -> dict[str, nn.Module]:
    found = vars(estimator).items()
    return {name: value for name, value in found if _is_fitted_name(name) and isinstance(value, nn.Module)}


def _is_fitted_name(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _versions() -> dict[str, str]:
    packages = ("offmap", "torch", "numpy", "scikit-learn")
    return {"python": platform.python_version()} | {package: version(package) for package in packages}
