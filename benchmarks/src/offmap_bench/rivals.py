"""Libraries that are only compared with: nothing but a table imports them, and only when it runs."""

from importlib import import_module
from typing import Any


def rival(module: str, package: str, by: str = "this table") -> Any:
    """Imports a module of the extra ``bench``, or says how to get it.

    Args:
        module: Its full name.
        package: What to call the package it belongs to.
        by: Who needs it.

    Example:
        >>> rival("pyod_of_mars", "PyOD of Mars", by="the row X")
        Traceback (most recent call last):
        ImportError: the row X needs PyOD of Mars: pip install './benchmarks[rivals]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{by} needs {package}: pip install './benchmarks[rivals]'") from error
