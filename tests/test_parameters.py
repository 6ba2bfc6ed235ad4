"""Annotations decide which values a parameter takes, how the command line parses it, and what an error says."""

import inspect
import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest

from offmap.density import VAEDetector
from offmap.parameters import (
    Count,
    Fraction,
    Natural,
    NonNegative,
    Positive,
    Share,
    check,
    describe,
    hints,
    parse,
    require,
)


@dataclass(kw_only=True)
class Everything:
    """A parameter of each kind."""

    number: float = 0.5
    integer: int = 1
    flag: bool = False
    text: str = "some"
    fraction: Fraction = 0.5
    share: Share = 0.0
    positive: Positive = 1.0
    non_negative: NonNegative = 0.0
    count: Count = 1
    natural: Natural = 0
    choice: Literal["bpd", "kl", "both"] = "bpd"
    level: Literal[1, 2] = 1
    widths: tuple[Count, ...] = (8,)
    maybe: Count | None = None
    label: int | str | None = None
    seed: int | np.random.RandomState | None = None
    maybe_widths: tuple[int, ...] | None = None
    numbers: tuple[float, ...] = ()
    anything: Any = None


GOOD: dict[str, list[Any]] = {
    "number": [0, -1.5, np.float32(2), np.int64(3), float("inf")],
    "integer": [-3, 10**20, np.int64(3), np.uint8(3)],
    "flag": [True, False],
    "text": ["", "any", np.str_("numpy")],
    "fraction": [0.001, 0.999],
    "share": [0, 0.0, 0.999],
    "positive": [1e-300, 5],
    "non_negative": [0, 0.0, 7.5],
    "count": [1, np.int32(9)],
    "natural": [0, 4],
    "choice": ["bpd", "kl", "both", np.str_("kl")],
    "level": [1, 2],
    "widths": [(), (1,), (3, 4), [3, 4], (np.int64(2),)],
    "maybe": [None, 1],
    "label": [None, -1, "unknown"],
    "seed": [None, 0, np.random.RandomState(0)],
    "maybe_widths": [None, (1, -1)],
    "numbers": [(), (0.5, 1)],
    "anything": [None, object(), np.zeros(3)],
}
BAD: dict[str, tuple[str, list[Any]]] = {
    "number": ("a number", ["1", None, True, np.zeros(2), 1j, 2**63]),
    "integer": ("an integer", [1.0, "1", True, np.True_, None]),
    "flag": ("a bool", [0, 1, "true", None]),
    "text": ("a str", [0, None, b"bytes"]),
    "fraction": ("a number between 0 and 1, both excluded", [0, 1, 0.0, 1.0, -1, float("nan"), "0.5"]),
    "share": ("a number between 0 and 1, 0 included", [1, 1.0, -0.1, float("nan")]),
    "positive": ("a number above 0", [0, -1e-9, float("nan"), None, 10**400]),
    "non_negative": ("a number at least 0", [-1e-9, float("nan")]),
    "count": ("an integer at least 1", [0, -1, 1.5, True]),
    "natural": ("an integer at least 0", [-1, 0.0]),
    "choice": ("'bpd', 'kl' or 'both'", ["KL", "", None, 0, np.array(["kl", "kl"])]),
    "level": ("1 or 2", [3, "1", None]),
    "widths": ("a tuple, each item an integer at least 1", [(0,), (1, 2.0), 5, "12", None, np.array([1, 2])]),
    "maybe": ("an integer at least 1 or None", [0, "none", False]),
    "label": ("an integer, a str or None", [1.5, (1,), True]),
    "seed": ("an integer, a RandomState or None", ["seven", 1.0]),
    "maybe_widths": ("a tuple, each item an integer or None", [(None,), 3]),
    "numbers": ("a tuple, each item a number", [0.5, ("0.5",)]),
}


def cases(of: dict[str, list[Any]]) -> list[Any]:
    return [pytest.param(name, value, id=f"{name}-{_shown(value)}") for name, values in of.items() for value in values]


def _shown(value: Any) -> str:
    """Without addresses, which differ between the processes of one test run."""
    return re.sub(" at 0x[0-9A-Fa-f]+", "", repr(value))


def test_every_kind_of_annotation_is_tried() -> None:
    assert list(GOOD) == list(hints(Everything))
    assert [*BAD, "anything"] == list(hints(Everything))


@pytest.mark.parametrize(("name", "value"), cases(GOOD))
def test_values_that_fit_pass(name: str, value: Any) -> None:
    check(Everything(**{name: value}))


@pytest.mark.parametrize(("name", "value"), cases({name: values for name, (_, values) in BAD.items()}))
def test_values_that_do_not_fit_are_named_with_what_was_expected(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match="must be") as refusal:
        check(Everything(**{name: value}))
    assert str(refusal.value) == f"{name} must be {BAD[name][0]}; got {value!r}"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("number=2", 2),
        ("number=-1.5e-3", -0.0015),
        ("number=.05", 0.05),
        ("number=+0.05", 0.05),
        ("number=-.5", -0.5),
        ("number=5.", 5.0),
        ("number=+.5e+1", 5.0),
        ("fraction=.05", 0.05),
        ("integer=+7", 7),
        ("widths=+8, 4", (8, 4)),
        ("numbers=.5,+1,2", (0.5, 1, 2)),
        ("text=.5", ".5"),
        ("label=007", "007"),
        ("anything=nan", "nan"),
        ("anything=.", "."),
        ("integer=-7", -7),
        ("flag=true", True),
        ("flag=False", False),
        ("text=some words", "some words"),
        ("text=5", "5"),
        ("text=none", "none"),
        ("text=true", "true"),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ("choice=kl", "kl"),
        ("level=2", 2),
        ("widths=256,128", (256, 128)),
        ("widths=[256, 128]", [256, 128]),
        ("widths=64", (64,)),
        ("widths=", ()),
        ("maybe=none", None),
        ("maybe=None", None),
        ("maybe=3", 3),
        ("label=3", 3),
        ("label=three", "three"),
        ("label=none", None),
        ("maybe_widths=8,8,3", (8, 8, 3)),
        ("maybe_widths=none", None),
        ("anything=5", 5),
    ],
)
def test_settings_are_parsed_by_their_annotation(setting: str, value: Any) -> None:
    name, found = parse(Everything, setting)
    assert (name, found, type(found)) == (setting.partition("=")[0], value, type(value))
    check(Everything(**{name: found}))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("count=0", "count must be an integer at least 1; got '0'"),
        ("count=1.5", "count must be an integer at least 1; got '1.5'"),
        ("count=many", "count must be an integer at least 1; got 'many'"),
        ("count=none", "count must be an integer at least 1; got 'none'"),
        ("integer=true", "integer must be an integer; got 'true'"),
        ("number=1,2", "number must be a number; got '1,2'"),
        ("number=+-5", "number must be a number; got '+-5'"),
        ("number=.", "number must be a number; got '.'"),
        ("number=1_000", "number must be a number; got '1_000'"),
        ("count=.5", "count must be an integer at least 1; got '.5'"),
        ("count=007", "count must be an integer at least 1; got '007'"),
        ("fraction=+1.", "fraction must be a number between 0 and 1, both excluded; got '+1.'"),
        ("flag=1", "flag must be a bool; got '1'"),
        ("choice=BPD", "choice must be 'bpd', 'kl' or 'both'; got 'BPD'"),
        ("widths=8,x", "widths must be a tuple, each item an integer at least 1; got '8,x'"),
        ("widths=none", "widths must be a tuple, each item an integer at least 1; got 'none'"),
        ("count", "a setting is name=value; got 'count'"),
        ("=5", "Everything has no parameter ''"),
        ("counts=5", "Everything has no parameter 'counts'; it has anything, choice, count, "),
    ],
)
def test_settings_that_do_not_fit_are_named(setting: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        parse(Everything, setting)


def test_signatures_show_limits_without_addresses() -> None:
    shown = str(inspect.signature(Everything))
    assert "fraction: Annotated[float, Limit('between 0 and 1, both excluded')] = 0.5" in shown.replace("typing.", "")
    assert " at 0x" not in shown


def test_an_argument_of_a_function_is_checked_by_its_annotation() -> None:
    require("unit", "bits", Literal["nats", "bits"])
    with pytest.raises(ValueError, match=r"^unit must be 'nats' or 'bits'; got 'bytes'$"):
        require("unit", "bytes", Literal["nats", "bits"])


def test_descriptions_of_other_types_do_not_fail() -> None:
    assert describe(list[int]) == "a list"
    assert describe(Literal["only"]) == "'only'"


def test_an_estimator_is_checked_when_it_is_fitted_and_not_before() -> None:
    estimator = VAEDetector(epochs=0, hidden=(4, 0))
    with pytest.raises(
        ValueError, match=r"hidden must be a tuple, each item an integer at least 1 or None; got \(4, 0\)"
    ):
        estimator.fit(np.zeros((20, 2)))
