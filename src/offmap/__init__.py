"""Offmap: open-world learning. It finds what a model was never taught, says how sure it is, and learns it.

The names below are imported when they are first used, so that ``import offmap`` costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offmap.base import UNKNOWN, Detector, OpenSetClassifier
    from offmap.persist import load

_HOME = {
    "UNKNOWN": "offmap.base",
    "Detector": "offmap.base",
    "OpenSetClassifier": "offmap.base",
    "load": "offmap.persist",
}
_MODULES = ("collaborative", "data", "density", "dependence", "metrics", "openset", "sampling")

__all__ = ["UNKNOWN", "Detector", "OpenSetClassifier", "load"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"offmap.{name}")
    raise AttributeError(f"module 'offmap' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*globals(), *_HOME, *_MODULES))
