"""Methods and parameters as the plain values that a stored cell holds."""

import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from importlib import import_module
from types import FunctionType
from typing import Any

from offmap_bench.table import settings_of


def plain(value: Any) -> Any:
    """Turns a method or a parameter into values that JSON can hold; two results are equal only if the methods are.

    Example:
        >>> plain({"hidden": (64, 64), "activation": settings_of, "lr": float("inf")})
        {'hidden': [64, 64], 'activation': 'offmap_bench.table.settings_of', 'lr': 'inf'}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    if isinstance(value, type):
        return public_name(value)
    if isinstance(value, FunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    return _plain_object(value)


def public_name(cls: type) -> str:
    """Returns the name of a class in the outermost package that exports it, which survives a move between modules.

    Example:
        >>> from offmap.density import VAEDetector
        >>> public_name(VAEDetector)
        'offmap.density.VAEDetector'
    """
    parts = cls.__module__.split(".")
    for end in range(1, len(parts)):
        package = ".".join(parts[:end])
        if vars(import_module(package)).get(cls.__name__) is cls:
            return f"{package}.{cls.__qualname__}"
    return f"{cls.__module__}.{cls.__qualname__}"


def _plain_object(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if hasattr(value, "get_params") or is_dataclass(value):
        # "outer__inner" repeats a parameter of the nested estimator.
        own = {name: item for name, item in settings_of(value).items() if "__" not in name}
        return {"class": plain(type(value)), **plain(own)}
    if " at 0x" in repr(value):
        raise ValueError(f"parameters must be plain values, estimators or named functions; got {value!r}")
    return repr(value)
