"""Save and load fitted estimators: one safetensors file, metadata in JSON, never pickle.

A file holds the class, its parameters, the versions it was made with, and every fitted attribute (names that end in
``_``). Networks are stored as their tensors: loading makes them anew with the estimator's ``_build`` and fills them.
"""

import os
import platform
from importlib.metadata import version
from typing import Any

from torch import nn

from offmap import tensorfile
from offmap.catalog import public_class, public_path
from offmap.tensorfile import TensorFileError
from offmap.train import local_seed

SCHEMA = 1


class ModelFileError(ValueError):
    """A model file that cannot be loaded; the message says why."""


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Writes a fitted estimator to ``path``; a kill while writing leaves the old file whole."""
    fitted = {name: value for name, value in vars(estimator).items() if _is_fitted_name(name)}
    modules = {name: value for name, value in fitted.items() if isinstance(value, nn.Module)}
    content = {
        "schema": SCHEMA,
        "class": public_path(type(estimator)),
        "parameters": estimator.get_params(deep=False),
        "versions": _versions(),
        "attributes": {name: value for name, value in fitted.items() if name not in modules},
        "modules": {name: dict(module.state_dict()) for name, module in modules.items()},
    }
    tensorfile.write(path, content)


def load(path: str | os.PathLike[str]) -> Any:
    """Restores what ``save`` wrote, or raises a ``ModelFileError`` that says why it cannot.

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
        content = tensorfile.read(path)
        return _restore(content)
    except (ModelFileError, TensorFileError) as error:
        raise ModelFileError(f"cannot load {os.fspath(path)}: {error}") from None


def _restore(content: Any) -> Any:
    _require_known_schema(content)
    cls = _class_of(content["class"])
    try:
        estimator = cls(**content["parameters"])
        for name, value in content["attributes"].items():
            setattr(estimator, name, value)
        # The first weights of a network are drawn at random, which must not move the caller's random state.
        with local_seed(0):
            estimator._build()
        for name, tensors in content["modules"].items():
            _fill(getattr(estimator, name), name, tensors)
    except (AttributeError, KeyError, TypeError) as error:
        raise ModelFileError(f"its content does not fit {content['class']}: {error}") from None
    return estimator


def _require_known_schema(content: Any) -> None:
    schema = content.get("schema") if isinstance(content, dict) else None
    if not isinstance(schema, int) or not {"class", "parameters", "attributes", "modules"} <= content.keys():
        raise ModelFileError("it is not a model")
    if schema > SCHEMA:
        wrote = content.get("versions", {}).get("offmap", "a newer release")
        raise ModelFileError(f"its schema is {schema}, this release reads up to {SCHEMA}; it needs Offmap {wrote}")


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


def _is_fitted_name(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _versions() -> dict[str, str]:
    packages = ("offmap", "torch", "numpy", "scikit-learn")
    return {"python": platform.python_version()} | {package: version(package) for package in packages}
