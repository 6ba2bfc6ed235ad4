"""The cells of one column of a table as words, numbers, truth values or days, whatever type the column came with."""

import datetime
import re
import warnings
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["Read", "as_booleans", "as_days", "as_numbers", "as_words", "date_format", "is_zone", "time_zone"]

Column = Any  # a pandas Series; its stubs ask for a type of cells that nobody knows here
_MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "none", "null", "<na>", "nat"})
_TRUE, _FALSE = frozenset({"true", "yes", "t", "y"}), frozenset({"false", "no", "f", "n"})
_DAY = 86_400.0
# An offset from UTC behind a time of day. It is no part of what the clock showed, and summer has another than winter.
_OFFSET = re.compile(r"((?:\dT|:)\d[^+-]*?)\s*(?:Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)$", re.IGNORECASE)
_OF_OFFSETS = re.compile(r"\s*%[zZ]$")


class Read(NamedTuple):
    """A column read as one kind of value.

    Args:
        values: One number per cell; NaN where it is missing or cannot be read.
        missing: Whether each cell is empty or a word such as "NA".
        unreadable: Whether each cell holds something of another kind.
    """

    values: NDArray[np.float64]
    missing: NDArray[np.bool_]
    unreadable: NDArray[np.bool_]


def as_words(column: Column) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """Each cell as a text without spaces around it, and whether it is missing; a whole number has no decimal point.

    Example:
        >>> words, missing = as_words(pd.Series([7.0, None, " FR"], dtype=object))
        >>> words[~missing]
        array(['7', 'FR'], dtype=object)
    """
    cells = column.to_numpy(dtype=object)
    words = np.array([_word(cell) for cell in cells], dtype=object)
    return words, np.asarray(column.isna()) | (words == "")


def as_numbers(column: Column) -> Read:
    """Reads numbers; texts such as "1.5" and durations (in seconds) count, truth values count as 0 and 1.

    Example:
        >>> as_numbers(pd.Series(["1.5", "NA", "x"])).unreadable
        array([False, False,  True])
    """
    if pd.api.types.is_timedelta64_dtype(column):
        return _read(column.dt.total_seconds().to_numpy(dtype=np.float64), column.isna())
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return _read(values, np.isnan(values))
    if pd.api.types.is_datetime64_any_dtype(column):
        return _read(np.full(len(column), np.nan), column.isna())
    words, missing = _words_and_gaps(column)
    return _read(pd.to_numeric(pd.Series(words, dtype=object), errors="coerce").to_numpy(dtype=np.float64), missing)


def as_booleans(column: Column) -> Read:
    """Reads truth values: the type bool, and the words true, yes, t, y and their opposites, as 1 and 0."""
    if pd.api.types.is_bool_dtype(column):
        return _read(column.to_numpy(dtype=np.float64, na_value=np.nan), column.isna())
    words, missing = _words_and_gaps(column)
    lower = [word.lower() for word in words]
    values = [1.0 if word in _TRUE else 0.0 if word in _FALSE else np.nan for word in lower]
    return _read(np.array(values, dtype=np.float64), missing)


def as_days(column: Column, form: str, zone: str = "") -> Read:
    """Reads dates and times as days since 1970 on the clock that they were written by.

    Args:
        column: The column.
        form: Format of dates that are texts, as ``date_format`` found it.
        zone: The time zone whose clock counts, for columns whose type names another; "" for the zone that they name.
    """
    if pd.api.types.is_numeric_dtype(column):
        return _read(np.full(len(column), np.nan), column.isna())
    if pd.api.types.is_datetime64_any_dtype(column):
        return _read(_days(_in_zone(column, zone)), column.isna())
    words, missing = _words_and_gaps(column)
    times = _parsed([None if gap else word for word, gap in zip(words, missing, strict=True)], form)
    return _read(_days(times), missing)


def time_zone(column: Column) -> str:
    """The time zone that the type of a column names; "" if it names none that could be found again.

    Example:
        >>> time_zone(pd.Series(pd.date_range("2025-01-01", periods=2, tz="Europe/Berlin")))
        'Europe/Berlin'
        >>> time_zone(pd.Series(pd.date_range("2025-01-01", periods=2)))
        ''
    """
    name = str(column.dtype.tz) if isinstance(column.dtype, pd.DatetimeTZDtype) else ""
    return name if is_zone(name) else ""


def is_zone(name: str) -> bool:
    """Whether a text names a time zone that is known here."""
    try:
        pd.DatetimeTZDtype(tz=name)
    except (TypeError, ValueError, KeyError, OSError):
        return False
    return True


def date_format(column: Column) -> str:
    """The format in which most texts of a column are dates: ISO 8601, or that of some; "" if they are not dates.

    Example:
        >>> date_format(pd.Series(["31/12/2024", "01/02/2025"])), date_format(pd.Series(["oak", "elm"]))
        ('%d/%m/%Y', '')
    """
    if pd.api.types.is_datetime64_any_dtype(column):
        return "ISO8601"
    words, missing = _words_and_gaps(column)
    present = [_on_its_clock(word) for word in words[~missing] if any(sign.isdigit() for sign in word)][:1000]
    if len(present) < 0.5 * min(1000, int((~missing).sum())) or not present:
        return ""
    with warnings.catch_warnings():
        # pandas warns if a date shows which of day and month comes first, which is what is asked.
        warnings.simplefilter("ignore", UserWarning)
        # The format may change midway: the most common one is sought.
        some = {present[place] for place in (0, len(present) // 2, -1)}
        guesses = [pd.tseries.api.guess_datetime_format(word, dayfirst=day) for word in some for day in (False, True)]
    forms = ["ISO8601", *sorted({guess for guess in guesses if guess})]
    found = {form: float(_parsed(present, form).notna().mean()) for form in forms}
    best = max(found, key=lambda form: found[form])
    return best if found[best] >= 0.5 else ""


def _in_zone(times: Column, zone: str) -> Column:
    """The times on the clock of a zone; those that name no zone stay as they are."""
    return times.dt.tz_convert(zone) if zone and times.dt.tz is not None else times


def _days(times: Column) -> NDArray[np.float64]:
    wall = times.dt.tz_localize(None) if times.dt.tz is not None else times
    seconds = wall.to_numpy().astype("datetime64[us]").astype(np.float64) / 1e6
    return np.where(wall.isna(), np.nan, seconds / _DAY)


def _parsed(words: Sequence[str | None], form: str) -> Column:
    """Texts as times; a text that is no date of the format becomes a gap."""
    clocks: Column = pd.Series([None if word is None else _on_its_clock(word) for word in words], dtype="str")
    return pd.to_datetime(clocks, format=_OF_OFFSETS.sub("", form), errors="coerce", utc=True)


def _on_its_clock(word: str) -> str:
    """A time as the clock showed it where it was written, without the offset from UTC."""
    return _OFFSET.sub(r"\1", word)


def _words_and_gaps(column: Column) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """Words, with those that mean "missing" counted as missing: in a column of numbers "NA" is no country."""
    words, missing = as_words(column)
    return words, missing | np.array([word.lower() in _MISSING_WORDS for word in words], dtype=bool)


def _word(cell: Any) -> str:
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, float | np.floating) and np.isfinite(cell) and cell == int(cell):
        return str(int(cell))
    if isinstance(cell, datetime.date):
        return cell.isoformat()
    return format(cell, "f") if isinstance(cell, Decimal) else str(cell)


def _read(values: NDArray[np.float64], missing: Any) -> Read:
    gaps = np.asarray(missing, dtype=bool)
    return Read(np.where(gaps, np.nan, values), gaps, np.isnan(values) & ~gaps)
