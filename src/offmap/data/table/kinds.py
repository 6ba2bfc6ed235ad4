"""Decides what a column of a table holds, from its training cells."""

import re
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from offmap.data.table.cells import Read, as_booleans, as_days, as_numbers, as_words, date_format

__all__ = ["KINDS", "Finding", "Kind", "kind_of"]

Kind = Literal["number", "boolean", "date", "category", "constant", "identifier", "empty"]
KINDS = ("number", "boolean", "date", "category")

# From this share of readable cells on, the others are taken for mistakes, and the column is not a category.
_MOSTLY = 0.8
# Fewer rows than this tell nothing about whether values repeat.
_FEWEST_ROWS = 20
_MOST_VALUES = 100_000
_EXPECTED_PAIRS = 10
_NAMED_ID = re.compile(r"(^|[\s_\-.])(id|uuid|guid|key)$|[a-z](Id|ID)$", re.IGNORECASE)


class Finding(NamedTuple):
    """What a column holds.

    Args:
        kind: Its kind.
        why: Why it is left out, for the kinds that are.
        form: Format of its dates.
        read: Its cells as numbers, truth values or days.
    """

    kind: Kind
    why: str = ""
    form: str = ""
    read: Read | None = None


def kind_of(column: Any, wanted: str | None = None) -> Finding:
    """Decides what a column holds.

    Args:
        column: The training cells.
        wanted: The kind to read it as, if the user says so.

    Example:
        >>> kind_of(pd.Series(["oak", "elm", "oak"])).kind, kind_of(pd.Series([3, 3, 3])).kind
        ('category', 'constant')
    """
    if wanted is not None:
        return _as_wanted(column, wanted)
    words, missing = as_words(column)
    present = words[~missing]
    if not len(present):
        return Finding("empty", "it has no values")
    distinct = len(set(present))
    if distinct == 1 and not missing.any():
        return Finding("constant", f"every value is {present[0]!r}")
    found = _measured(column)
    if found.kind in ("number", "category") and (why := _identifier(column, found, distinct, len(present))):
        return Finding("identifier", why)
    return found


def _as_wanted(column: Any, wanted: str) -> Finding:
    if wanted == "number":
        return Finding("number", read=as_numbers(column))
    if wanted == "boolean":
        return Finding("boolean", read=as_booleans(column))
    if wanted == "date":
        form = date_format(column) or "ISO8601"
        return Finding("date", form=form, read=as_days(column, form))
    return Finding("category")


def _measured(column: Any) -> Finding:
    """The first kind that most cells can be read as; else a category."""
    if pd.api.types.is_bool_dtype(column):
        return Finding("boolean", read=as_booleans(column))
    if not pd.api.types.is_datetime64_any_dtype(column):
        for kind, read in (("number", as_numbers(column)), ("boolean", as_booleans(column))):
            if _mostly(read) and not (kind == "number" and _is_code(column)):
                return Finding("number" if kind == "number" else "boolean", read=read)
        if pd.api.types.is_numeric_dtype(column):
            return Finding("category")
    if not (form := date_format(column)):
        return Finding("category")
    days = as_days(column, form)
    # What is left may be dates in another format: a mistake to report, not a category.
    others = column[days.unreadable]
    mixed = not len(others) or _mostly(as_days(others, date_format(others) or form))
    return Finding("date", form=form, read=days) if _mostly(days) or mixed else Finding("category")


def _mostly(read: Read) -> bool:
    present = int((~read.missing).sum())
    return present > 0 and present - int(read.unreadable.sum()) >= _MOSTLY * present


def _is_code(column: Any) -> bool:
    """Whether numbers are written with leading zeros, as codes are."""
    if pd.api.types.is_numeric_dtype(column):
        return False
    words, missing = as_words(column)
    return any(re.fullmatch(r"[+-]?0\d+", word) for word in words[~missing])


def _identifier(column: Any, found: Finding, distinct: int, present: int) -> str:
    """Why a column looks like the names of the rows, or "" if it does not."""
    if present < _FEWEST_ROWS:
        return ""
    if found.kind == "category":
        many = distinct > 0.5 * present or distinct > _MOST_VALUES
        return f"it has {distinct:,} different texts in {present:,} rows, as names and free texts have" if many else ""
    assert found.read is not None
    values = found.read.values[~np.isnan(found.read.values)]
    if distinct < present or not np.array_equal(values, np.round(values)):
        return ""
    # Of n numbers drawn from a range R, about n² / 2R pairs would be equal: none at all means that they were counted.
    counted = present**2 > 2 * _EXPECTED_PAIRS * (np.ptp(values) + 1)
    named = _NAMED_ID.search(str(column.name)) is not None
    return f"it numbers the rows: {present:,} different whole numbers" if counted or named else ""
