"""What is usual in a column of dates: the times of day, or the days."""

from typing import Any

import numpy as np
import pandas as pd

from offmap.data.table.cells import as_days
from offmap.data.table.kinds import kind_of
from offmap.explain.composition import FloatArray


def days_of(column: Any) -> FloatArray | None:
    """The cells as days since 1970, NaN where there is none; None if the column holds no dates.

    Example:
        >>> days_of(pd.Series(["1970-01-02", None, "1970-01-03 12:00"]))
        array([1. , nan, 2.5])
    """
    if pd.api.types.is_numeric_dtype(column):
        return None
    found = kind_of(column)
    return as_days(column, found.form).values if found.kind == "date" else None


def usual_dates(days: FloatArray) -> tuple[str, str] | None:
    """The shortest span of the clock that holds all times, or the first and the last day where there are no times.

    Example:
        >>> usual_dates(np.array([5.99, 9.01, 3.0])), usual_dates(np.array([1.0, 2.0]))
        (('23:45', '00:14'), ('1970-01-02', '1970-01-03'))
    """
    present = days[~np.isnan(days)]
    if not len(present):
        return None
    if not (present % 1).any():
        first, last = (pd.Timestamp(day, unit="D").date().isoformat() for day in (present.min(), present.max()))
        return first, last
    clock = np.sort(present % 1)
    # The longest pause is what is not usual; the span begins after it.
    start = int(np.argmax(np.diff(clock, append=clock[0] + 1))) + 1
    return _time(clock[start % len(clock)]), _time(clock[start - 1])


def _time(part: float) -> str:
    return f"{int(part * 24):02d}:{int(part * 1440) % 60:02d}"
