"""An explanation in words, for a terminal or a mail."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from offmap.explain.explanation import Explanation, Reason

SHOWN = 5
"""How many reasons are written out."""


def in_words(explanation: Explanation) -> str:
    """What the row is, what makes it so, what it was compared with and what would make it normal."""
    return "\n".join(_lines(explanation))


def reason_in_words(reason: Reason) -> str:
    """A reason as one phrase.

    Example:
        >>> reason_in_words(Reason("amount", 9300.0, (380.0, 450.0), 5.1, 0.63))
        'amount: 9300 (usually 380 to 450), 63 %'
        >>> reason_in_words(Reason("who won the cup?", "who won the cup?", None, 0.4, 1.0))
        '"who won the cup?", 100 %'
    """
    return f"{_fact(reason)}, {_percent(reason.share)}"


def value_in_words(value: Any) -> str:
    """A value to four digits.

    Example:
        >>> [value_in_words(value) for value in (0.123456, 12345678.0, 3, "red", None, float("nan"), 1e-9)]
        ['0.1235', '12,345,678', '3', 'red', 'missing', 'missing', '1e-09']
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "missing"
    if isinstance(value, float) and math.isfinite(value) and 1e4 <= abs(value) < 1e12:
        return f"{value:,.0f}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def usual_in_words(usual: Any) -> str:
    """What is usual: a number, a range, or some values.

    Example:
        >>> usual_in_words((2.0, 2.0)), usual_in_words((0.5, 2.0)), usual_in_words(frozenset({"red", "blue"}))
        ('2', '0.5 to 2', 'blue or red')
    """
    if isinstance(usual, tuple):
        low, high = (value_in_words(end) for end in usual)
        return low if low == high else f"{low} to {high}"
    named = sorted(value_in_words(value) for value in usual)
    return " or ".join(named[:3]) + (" and others" if len(named) > 3 else "")


def _lines(explanation: Explanation) -> Iterator[str]:
    yield _headline(explanation)
    reasons = explanation.reasons(SHOWN)
    if reasons:
        yield "What makes it novel" + (" (exact shares of the novelty):" if explanation.exact else ":")
        yield from _table(reasons)
    else:
        yield "No part of it makes it more novel than the nearest normal rows."
    yield from _neighbors(explanation)
    yield from _closest(explanation)
    yield from _profile(explanation)
    yield from _change(explanation)


def _headline(explanation: Explanation) -> str:
    state = "novel" if explanation.novel else "normal"
    return f"Row {explanation.row} is {state}: {_decision(explanation)}."


def _decision(explanation: Explanation) -> str:
    """What decided: the threshold of the novelty or, by class, the p-value."""
    novelty = f"novelty {value_in_words(explanation.novelty)}"
    p_value = "" if explanation.p_value is None else f"p-value {explanation.p_value:.2g}"
    if explanation.threshold is None:
        relation = "not above" if explanation.novel else "above"
        return f"{p_value} by class, {relation} alpha {value_in_words(explanation.alpha)}; {novelty}"
    relation = "above" if explanation.novel else "not above"
    decided = f"{novelty}, {relation} the threshold {value_in_words(explanation.threshold)}"
    return f"{decided}; {p_value}" if p_value else decided


def _table(reasons: Sequence[Reason]) -> Iterator[str]:
    facts = [_fact(reason) for reason in reasons]
    width = max(map(len, facts))
    for fact, reason in zip(facts, reasons, strict=True):
        yield f"  {fact:<{width}}  {_percent(reason.share):>5}"


def _fact(reason: Reason) -> str:
    if reason.usual is None:
        return f'"{reason.part}"'
    return f"{reason.part}: {value_in_words(reason.value)} (usually {usual_in_words(reason.usual)})"


def _neighbors(explanation: Explanation) -> Iterator[str]:
    if explanation.kind == "text":
        yield f'Nearest known text: "{explanation.neighbor_rows[0]}".'
        return
    places = ", ".join(dict.fromkeys(str(row) for row in explanation.neighbors.tolist()))
    yield f"Nearest normal rows: {places} of the reference."


def _closest(explanation: Explanation) -> Iterator[str]:
    closest = explanation.closest
    if closest is None:
        return
    line = f"Closest known class: {closest.label} ({_percent(closest.proba)} of the known classes)"
    against = [] if closest.against is None else explanation.ranked(closest.against, 3)
    yield f"{line}; against it: {', '.join(_fact_alone(reason) for reason in against)}." if against else f"{line}."


def _fact_alone(reason: Reason) -> str:
    return f'"{reason.part}"' if reason.usual is None else f"{reason.part} {value_in_words(reason.value)}"


def _profile(explanation: Explanation) -> Iterator[str]:
    profile = explanation.profile
    if profile is None:
        return
    if not profile.rows:
        yield f"Entity {profile.entity} has no normal rows in the reference; compared with those of other entities."
        return
    usual = dict(zip(explanation.parts, profile.usual, strict=False))
    told = [f"{r.part} {usual_in_words(usual[r.part])}" for r in explanation.reasons(3) if usual.get(r.part)]
    seen = f" usually sees {', '.join(told)}" if told else ""
    yield f"Entity {profile.entity}{seen} ({profile.rows} rows in the reference)."


def _change(explanation: Explanation) -> Iterator[str]:
    found = explanation.counterfactual
    if found is None:
        return
    p_value = "" if found.p_value is None else f" (p-value {found.p_value:.2g})"
    if explanation.kind == "text":
        yield f'It would be normal as "{found.row}"{p_value}.'
    elif explanation.kind == "image":
        count = len(found.changed)
        yield f"It would be normal with {count} of {len(explanation.parts)} places as in a normal image{p_value}."
    else:
        changes = zip(found.names, found.after, found.before, strict=True)
        told = [f"{name} {value_in_words(new)} instead of {value_in_words(old)}" for name, new, old in changes]
        more = f" and {len(told) - SHOWN} further changes" if len(told) > SHOWN else ""
        yield f"It would be normal with {', '.join(told[:SHOWN])}{more}{p_value}."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
