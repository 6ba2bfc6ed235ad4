"""Save and load fitted estimators: one safetensors file, metadata in JSON, never pickle.

A file holds the class, its parameters but for functions, the versions it was made with, and every fitted attribute
(names that end in ``_``). Networks are stored as their tensors: loading builds them with the estimator's ``_build``
and fills them. Classes are looked up among the public ones only (``offmap.catalog``), which ``load`` passes in.

What a file says is not trusted. Networks may not ask for more memory than its tensors explain, every fitted attribute
is checked by the class that owns it (``_check_fitted``, ``_check_promises``), and what reaches beyond it
(``_untrusted``) needs consent.
"""

import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from offmap import foreign_parts, tensorfile
from offmap.allocation import allowance_for
from offmap.errors import reason_of
from offmap.parameters import check
from offmap.random_state import local_seed
from offmap.tensorfile import TensorFileError

SCHEMA = 1
_PARTS = {"class", "parameters", "versions", "attributes", "modules"}
# Marks an estimator inside another in the file.
_ESTIMATOR = "$estimator"
# What a fingerprint calls the model where there is none: rows come as outputs computed elsewhere.
_NO_MODEL = "builtins.NoneType"
# Finds a public class by its path, or returns None.
FindClass = Callable[[str], Any]


@dataclass(frozen=True)
class Consent:
    """What the user of a file decides, not the file.

    Args:
        find_class: Finds a public class by the path that the file names.
        device: Where torch computes, if not where the model was fitted.
        trusted: Names that the file may follow beyond itself, such as those of text models; None trusts all.
    """

    find_class: FindClass
    device: str | None = None
    trusted: Sequence[str] | None = ()


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
        # What is saved is in use already, and follows what it names.
        _restored(content, Consent(find_class, trusted=None))
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
    parameter, attribute = _foreign(type(estimator))
    modules = {name: module for name, module in _modules(estimator).items() if name != attribute}
    found = vars(estimator).items()
    attributes = {name: value for name, value in found if _is_fitted_name(name) and name != attribute}
    parameters = {name: v for name, v in estimator.get_params(deep=False).items() if name != parameter}
    return {
        "class": path,
        "parameters": _taken_apart(_portable(type(estimator), parameters), classes),
        "attributes": _taken_apart({name: v for name, v in attributes.items() if name not in modules}, classes),
        "modules": {name: dict(module.state_dict()) for name, module in modules.items()},
    }


def _portable(cls: type, values: dict[str, Any]) -> dict[str, Any]:
    """Parameters that mean the same on another machine.

    A file holds no code: whoever needs a function, such as a log density, gives it again. Nor does it say where to
    write or whether to use the network: of ``local_parameters`` only False and None, which do less, are kept.
    """
    local: frozenset[str] = getattr(cls, "local_parameters", frozenset())
    kept = {name: value for name, value in values.items() if name not in local or value in (False, None)}
    return {name: None if _is_code(value) else value for name, value in kept.items()}


def _is_code(value: Any) -> bool:
    return callable(value) and not isinstance(value, nn.Module)


def _taken_apart(values: dict[str, Any], classes: dict[str, type]) -> dict[str, Any]:
    return {name: _as_content(value, classes) for name, value in values.items()}


def _as_content(value: Any, classes: dict[str, type]) -> Any:
    """The content of an estimator inside another, alone or in a tuple; any other value as it is."""
    if isinstance(value, tuple):
        return tuple(_as_content(item, classes) for item in value)
    if (part := foreign_parts.packed(value, classes)) is not None:
        return part
    return {_ESTIMATOR: _content(value, classes)} if isinstance(value, BaseEstimator) else value


def _put_together(values: dict[str, Any], consent: Consent) -> dict[str, Any]:
    return {name: _from_content(value, consent) for name, value in values.items()}


def _from_content(value: Any, consent: Consent) -> Any:
    """The inverse of ``_as_content``."""
    if isinstance(value, tuple):
        return tuple(_from_content(item, consent) for item in value)
    if foreign_parts.is_packed(value):
        return foreign_parts.unpacked(value, consent.find_class)
    return _rebuilt(value[_ESTIMATOR], consent) if isinstance(value, dict) and _ESTIMATOR in value else value


def _foreign(cls: type) -> tuple[str, str]:
    """The parameter and the attribute that hold a model of another library, which no file holds; else empty names."""
    parameter, attribute = getattr(cls, "foreign", ("", ""))
    return parameter, attribute


def restore(path: str | os.PathLike[str], consent: Consent, model: Any = None) -> Any:
    """Restores what ``save`` wrote, or raises a ``ModelFileError`` that says why it cannot.

    Args:
        path: The file.
        consent: What the user decides.
        model: The model of another library that the file was saved without; of a model with one copy per fold, all
            copies in their order.
    """
    try:
        return _answering(_restored(tensorfile.read(path), consent), model)
    except TensorFileError as error:
        raise ModelFileError(f"cannot load the model: {error}") from None
    except ModelFileError as error:
        raise ModelFileError(f"cannot load {os.fspath(path)}: {reason_of(error)}") from None


def _answering(estimator: Any, model: Any) -> Any:
    """The estimator with its foreign model in place, once it has answered of the rows that the file holds."""
    try:
        holder = _with_model(_holder(estimator), model)
        if _foreign(type(holder))[0]:
            holder._check_answers()
        return estimator
    except ModelFileError:
        raise
    except Exception as error:  # as in _restored
        raise ModelFileError(f"its content does not fit {type(estimator).__name__}: {reason_of(error)}") from None


def _holder(estimator: Any) -> Any:
    """The estimator whose foreign model a file lacks: this one, or the one that it wraps."""
    wrapped = getattr(estimator, getattr(type(estimator), "wraps", ""), None)
    return estimator if wrapped is None else _holder(wrapped)


def _with_model(estimator: Any, model: Any) -> Any:
    """Puts the foreign model back into its place, after a check that it is the one that was saved."""
    parameter, attribute = _foreign(type(estimator))
    if not parameter:
        if model is not None:
            raise ModelFileError(f"it holds a whole {type(estimator).__name__}; load it without model=")
        return estimator
    if members := getattr(estimator, "members_", ()):
        return _with_models(estimator, members, model, attribute)
    taken = estimator.fingerprint_
    if model is None and taken.model_ != _NO_MODEL:
        raise ModelFileError(f"it was saved without its {taken.model_}; give it as model=")
    setattr(estimator, parameter, model)
    setattr(estimator, attribute, model)
    if reason := taken.differs(model, estimator.novelty):
        raise ModelFileError(f"model= is not the {taken.model_} that was saved: {reason}")
    return estimator


def _with_models(estimator: Any, members: tuple[Any, ...], models: Any, attribute: str) -> Any:
    """Puts the foreign model of each fold back into its place."""
    given = [None] * len(members) if models is None else models
    if not isinstance(given, list | tuple) or len(given) != len(members):
        raise ModelFileError(
            f"it was saved without the {len(members)} models of its folds; give them in their order, as "
            f"model=[member.{attribute} for member in fitted.members_] of the model that was saved"
        )
    for member, model in zip(members, given, strict=True):
        _with_model(member, model)
    return estimator


def _restored(content: Any, consent: Consent) -> Any:
    _require_known_schema(content)
    try:
        # Initial weights are drawn at random, which must not move the caller's random state.
        with local_seed(0), allowance_for(_sizes(content)):
            return _rebuilt(content, consent)
    except ModelFileError:
        raise
    except Exception as error:  # what a file says may be wrong in any way, and must end in one error
        raise ModelFileError(f"its content does not fit {content['class']}: {reason_of(error)}") from None


def _sizes(value: Any) -> Iterator[int]:
    """How many numbers each tensor and each array in nested values holds."""
    if isinstance(value, Tensor):
        yield value.numel()
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        yield value.size
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _sizes(item)


def _rebuilt(content: Any, consent: Consent) -> Any:
    cls = consent.find_class(str(content["class"]))
    if cls is None:
        raise ModelFileError(f"it holds a {content['class']!r}, which is not an estimator of this release")
    _require_fitted(cls, content)
    given = _put_together(_portable(cls, content["parameters"]), consent)
    parameter, _ = _foreign(cls)
    estimator = cls(**({parameter: None} if parameter else {}), **given)
    if consent.device is not None and "device" in content["parameters"]:
        estimator.set_params(device=consent.device)
    check(estimator)
    _require_trusted(estimator, consent)
    for name, value in _put_together(content["attributes"], consent).items():
        if not _is_fitted_name(name):
            raise ModelFileError(f"it holds {name}, which no fit leaves")
        setattr(estimator, name, value)
    # A model that consists of one model per fold has no networks or fitted state of its own.
    whole = not hasattr(estimator, "members_")
    if whole:
        getattr(estimator, "_build", lambda: None)()
    modules = _modules(estimator)
    if modules.keys() != content["modules"].keys():
        raise ModelFileError(f"its networks should be {sorted(modules)}, but are {sorted(content['modules'])}")
    for name, module in modules.items():
        _fill(module, name, content["modules"][name])
    getattr(estimator, "_check_promises", lambda: None)()
    if whole:
        getattr(estimator, "_check_fitted", lambda: None)()
    return estimator


def _require_trusted(estimator: Any, consent: Consent) -> None:
    """Refuses what a file names outside itself, such as a text model, unless the user trusts that name."""
    if consent.trusted is None:
        return
    for name in getattr(estimator, "_untrusted", tuple)():
        if name not in consent.trusted:
            raise ModelFileError(
                f"its {type(estimator).__name__} uses {name!r}, which is not part of Offmap; if you trust it, load the "
                f"model with trusted=[{name!r}], or --trust on the command line"
            )


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
    # The models of the folds have fingerprints; the whole has none.
    found = content["attributes"].keys() | ({"fingerprint_"} if "members_" in content["attributes"] else set())
    if missing := sorted(getattr(cls, "always_fitted", frozenset()) - found):
        raise ModelFileError(f"it lacks {', '.join(missing)}")


def _fill(module: nn.Module, name: str, tensors: Any) -> None:
    try:
        module.load_state_dict(tensors)
    except Exception as error:  # tensors of any names, types and shapes
        raise ModelFileError(f"the tensors of {name!r} do not fit the network: {reason_of(error)}") from None
    module.eval()


def _modules(estimator: Any) -> dict[str, nn.Module]:
    found = vars(estimator).items()
    return {name: value for name, value in found if _is_fitted_name(name) and isinstance(value, nn.Module)}


def _is_fitted_name(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _versions() -> dict[str, str]:
    packages = ("offmap", "torch", "numpy", "scikit-learn")
    return {"python": platform.python_version()} | {package: version(package) for package in packages}
