"""Libraries that Offmap is compared with. Only tables import them, and only when they run."""

from importlib import import_module
from typing import Any


def rival(module: str, package: str, by: str = "this table") -> Any:
    """Imports a module of the extra ``rivals``, or says how to install it.

    Args:
        module: Full name of the module.
        package: Name of the package for the error message.
        by: What needs it, for the error message.

    Example:
        >>> rival("pyod_of_mars", "PyOD of Mars", by="the row X")
        Traceback (most recent call last):
        ImportError: the row X needs PyOD of Mars: pip install --editable './benchmarks[rivals]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{by} needs {package}: pip install --editable './benchmarks[rivals]'") from error
