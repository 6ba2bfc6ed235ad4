"""Errors that callers tell apart, and warnings that point at the caller's line."""

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


class WorkFailed(RuntimeError):
    """Work that was asked for correctly and could not be finished, such as training that diverged."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warns at the line outside this package that led here, however deep the call is."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
