"""Checking and parsing parameters by the type annotations of their dataclass fields.

An estimator's parameters are checked against the annotations when it is fitted, and the command line uses them to parse
``name=value``. The values of an option are listed once, in its ``Literal``.
"""

import json
import math
import re
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, Union

import numpy as np


@dataclass(frozen=True)
class Limit:
    """A condition on a number: ``words`` for error messages and ``holds`` to test it.

    Example:
        >>> Positive
        typing.Annotated[float, Limit('above 0')]
    """

    words: str
    holds: Callable[[Any], bool]

    def __repr__(self) -> str:
        return f"Limit({self.words!r})"


Fraction = Annotated[float, Limit("between 0 and 1, both excluded", lambda value: 0 < value < 1)]
Proportion = Annotated[float, Limit("between 0 and 1, both included", lambda value: 0 <= value <= 1)]
Share = Annotated[float, Limit("between 0 and 1, 0 included", lambda value: 0 <= value < 1)]
Positive = Annotated[float, Limit("above 0", lambda value: 0 < value < math.inf)]
NonNegative = Annotated[float, Limit("at least 0", lambda value: 0 <= value < math.inf)]
Multiple = Annotated[float, Limit("at least 1", lambda value: 1 <= value < math.inf)]
Count = Annotated[int, Limit("at least 1", lambda value: value >= 1)]
# Work per row, which a model file must not make endless.
Repeats = Annotated[int, Limit("from 1 to 1,000", lambda value: 1 <= value <= 1_000)]
# Tensors of torch's device "meta" have a shape and no numbers, which a model file must not ask for.
Device = Annotated[str, Limit("that names a device with numbers, as 'cpu'", lambda name: not name.startswith("meta"))]
Natural = Annotated[int, Limit("at least 0", lambda value: value >= 0)]


def check(estimator: Any) -> None:
    """Checks each parameter of an estimator against its annotation.

    Raises:
        ValueError: A value does not fit; the message names the parameter and what it must be.
    """
    for name, hint in hints(type(estimator)).items():
        require(name, getattr(estimator, name), hint)


def require(name: str, value: Any, hint: Any) -> None:
    """Raises a ``ValueError`` unless ``value``, the argument called ``name``, fits the annotation ``hint``.

    Example:
        >>> require("unit", "bytes", Literal["nats", "bits"])
        Traceback (most recent call last):
        ValueError: unit must be 'nats' or 'bits'; got 'bytes'
    """
    if not _fits(hint, value):
        raise ValueError(f"{name} must be {describe(hint)}; got {value!r}")


def parse(cls: type, setting: str) -> tuple[str, Any]:
    """Parses ``name=value`` as a parameter of ``cls`` and returns its name and value.

    Example:
        >>> from offmap.density import VAEDetector
        >>> parse(VAEDetector, "epochs=5")
        ('epochs', 5)
    """
    name, equals, text = setting.partition("=")
    known = hints(cls)
    if not equals:
        raise ValueError(f"a setting is name=value; got {setting!r}")
    if name not in known:
        raise ValueError(f"{cls.__name__} has no parameter {name!r}; it has {', '.join(sorted(known))}")
    for value in _readings(text):
        if _fits(known[name], value):
            return name, value
    raise ValueError(f"{name} must be {describe(known[name])}; got {text!r}")


def hints(cls: type) -> dict[str, Any]:
    """Returns the annotation of each parameter of ``cls``, a dataclass."""
    known = typing.get_type_hints(cls, include_extras=True)
    return {field.name: known[field.name] for field in fields(cls)}


def describe(hint: Any) -> str:
    """Describes the values that an annotation allows.

    Example:
        >>> describe(Count), describe(Literal["kl", "bpd"] | None)
        ('an integer at least 1', "'kl', 'bpd' or None")
    """
    *others, last = _alternatives(hint)
    return f"{', '.join(others)} or {last}" if others else last


def _alternatives(hint: Any) -> list[str]:
    """Describes each alternative of an annotation."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return [words for argument in arguments for words in _alternatives(argument)]
    return [repr(argument) for argument in arguments] if origin is Literal else [_in_words(hint)]


def _in_words(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return " ".join((describe(arguments[0]), *(limit.words for limit in arguments[1:])))
    if hint in _NUMBERS:
        return _NUMBERS[hint][0]
    if hint is type(None):
        return "None"
    if origin is tuple:
        return f"a tuple, each item {describe(arguments[0])}"
    return f"a {getattr(hint, '__name__', str(hint))}"


_NUMBERS: dict[Any, tuple[str, tuple[type, ...]]] = {
    float: ("a number", (int, float, np.integer, np.floating)),
    int: ("an integer", (int, np.integer)),
}


def _fits(hint: Any, value: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _fits(arguments[0], value) and all(limit.holds(value) for limit in arguments[1:])
    if origin is Literal:
        return any(isinstance(value, type(argument)) and value == argument for argument in arguments)
    if origin in (Union, types.UnionType):
        return any(_fits(argument, value) for argument in arguments)
    if origin is tuple:
        return isinstance(value, tuple | list) and all(_fits(arguments[0], item) for item in value)
    if hint in _NUMBERS:
        is_number = isinstance(value, _NUMBERS[hint][1]) and not isinstance(value, bool)
        return is_number and not (hint is float and _is_wide(value))
    return hint is Any or isinstance(value, origin or hint)


def _is_wide(value: Any) -> bool:
    """Whether a number is an integer of more than 64 bits, by which torch cannot multiply."""
    return isinstance(value, int) and abs(value) >= 2**63


_WORDS = {"none": None, "true": True, "false": False}
# Numbers that Python reads and JSON does not, such as .5, +5 and 5.; codes with a leading zero stay text.
_NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)?(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")


def _readings(text: str) -> list[Any]:
    """Returns the values that a text on the command line may stand for, the most specific first."""
    if text.lower() in _WORDS:
        return [_WORDS[text.lower()], text]
    try:
        items = _items(text)
    except ValueError:
        return [text]
    alone = items if len(items) == 1 else []
    return [*alone, tuple(items), text]


def _items(text: str) -> list[Any]:
    try:
        return list(json.loads(f"[{text}]"))
    except json.JSONDecodeError:
        return [_number(item.strip()) for item in text.split(",")]


def _number(text: str) -> int | float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a number")
    return int(text) if text.lstrip("+-").isdecimal() else float(text)
