"""Offmap: open-world learning. It finds what a model was never taught, says how sure it is, and learns it.

The names below are imported when they are first used, so that ``import offmap`` costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offmap.base import Detector, OpenSetClassifier
    from offmap.calibration import Calibrated, Guarded
    from offmap.catalog import load
    from offmap.labels import UNKNOWN
    from offmap.verdict import Verdict

__version__ = "0.1.0"

_HOME = {
    "UNKNOWN": "offmap.labels",
    "Calibrated": "offmap.calibration",
    "Detector": "offmap.base",
    "Guarded": "offmap.calibration",
    "OpenSetClassifier": "offmap.base",
    "Verdict": "offmap.verdict",
    "load": "offmap.catalog",
}
_MODULES = (
    "calibration",
    "collaborative",
    "data",
    "density",
    "dependence",
    "explain",
    "loop",
    "metrics",
    "monitor",
    "openset",
    "sampling",
    "scale",
    "scores",
)

__all__ = [
    "UNKNOWN",
    "Calibrated",
    "Detector",
    "Guarded",
    "OpenSetClassifier",
    "Verdict",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"offmap.{name}")
    raise AttributeError(f"module 'offmap' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*globals(), *_HOME, *_MODULES))
