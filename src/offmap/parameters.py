"""What a parameter may be, read from the annotation of its dataclass field.

The annotation is the only place that says it: estimators are checked against it when they are fitted, and the command
line parses ``name=value`` by it.
"""

import json
import math
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, Union

import numpy as np


@dataclass(frozen=True)
class Limit:
    """A condition on a number, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]


Fraction = Annotated[float, Limit("between 0 and 1, both excluded", lambda value: 0 < value < 1)]
Share = Annotated[float, Limit("between 0 and 1, 0 included", lambda value: 0 <= value < 1)]
Positive = Annotated[float, Limit("above 0", lambda value: 0 < value < math.inf)]
NonNegative = Annotated[float, Limit("at least 0", lambda value: 0 <= value < math.inf)]
Multiple = Annotated[float, Limit("at least 1", lambda value: 1 <= value < math.inf)]
Count = Annotated[int, Limit("at least 1", lambda value: value >= 1)]
Natural = Annotated[int, Limit("at least 0", lambda value: value >= 0)]


def check(estimator: Any) -> None:
    """Raises a ``ValueError`` that names the first parameter whose value does not fit its annotation."""
    for name, hint in hints(type(estimator)).items():
        value = getattr(estimator, name)
        if not _fits(hint, value):
            raise ValueError(f"{name} must be {describe(hint)}; got {value!r}")


def parse(cls: type, setting: str) -> tuple[str, Any]:
    """Turns ``name=value`` into the parameter's name and value, by its annotation.

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
    """The annotation of each parameter of ``cls``."""
    known = typing.get_type_hints(cls, include_extras=True)
    return {field.name: known[field.name] for field in fields(cls)}


def describe(hint: Any) -> str:
    """The annotation in words.

    Example:
        >>> describe(Count), describe(Literal["kl", "bpd"] | None)
        ('an integer at least 1', "'kl', 'bpd' or None")
    """
    *others, last = _alternatives(hint)
    return f"{', '.join(others)} or {last}" if others else last


def _alternatives(hint: Any) -> list[str]:
    """What a value may be, one by one."""
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
        return isinstance(value, _NUMBERS[hint][1]) and not isinstance(value, bool)
    return hint is Any or isinstance(value, origin or hint)


def _readings(text: str) -> list[Any]:
    """What a word on the command line may mean, the most specific first."""
    plain = {"none": None, "true": True, "false": False}
    if text.lower() in plain:
        return [plain[text.lower()], text]
    try:
        value = json.loads(f"[{text}]")
    except json.JSONDecodeError:
        return [text]
    alone = value if len(value) == 1 else []
    return [*alone, tuple(value), text]
