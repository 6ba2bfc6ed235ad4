"""Errors that callers tell apart, warnings that point at the caller's line, and text that is safe to print."""

import sys
import unicodedata
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)
_LONGEST = 2_000
_LONGEST_VALUE = 40
# Control characters, invisible formatting such as a change of direction, halves of surrogate pairs, line separators.
_UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")


class WorkFailed(RuntimeError):
    """Work that was asked for correctly and could not be finished, such as training that diverged."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warns at the line outside this package that led here, however deep the call is."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def printable(text: str, longest: int = _LONGEST) -> str:
    r"""Text from a file that cannot steer a terminal or a page: what is not printable is escaped, and it is cut.

    Args:
        text: The text.
        longest: Characters to keep, at most.

    Example:
        >>> print(printable("red: \x1b[31m, reversed: \u202e"))
        red: \x1b[31m, reversed: \u202e
        >>> printable("abcdef", longest=3)
        'abc…'
    """
    kept = text if len(text) <= longest else text[:longest] + "…"
    return kept if kept.isascii() and kept.isprintable() else "".join(map(_escaped, kept))


def short_repr(value: object) -> str:
    """A value as Python writes it, cut where it is long.

    Example:
        >>> short_repr("tall"), len(short_repr("x" * 99))
        ("'tall'", 40)
    """
    text = repr(value)
    if len(text) <= _LONGEST_VALUE:
        return text
    kept = _LONGEST_VALUE - 3
    return f"{value[:kept]!r}…" if isinstance(value, str) else f"{text[:kept]}…"


def reason_of(error: BaseException) -> str:
    """What an error says, on one line that is safe to print; the name of its type if it says nothing.

    Example:
        >>> reason_of(ValueError("two\\n  lines"))
        'two lines'
    """
    return printable(" ".join(str(error).split())) or type(error).__name__


def _escaped(character: str) -> str:
    if unicodedata.category(character) not in _UNPRINTABLE:
        return character
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
