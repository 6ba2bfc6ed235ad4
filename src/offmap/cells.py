"""Text in tables that spreadsheets open: it must stay text."""

import re
from typing import Any

import pandas as pd

from offmap.errors import printable

# What a spreadsheet takes for the start of a formula.
_FORMULA = re.compile(r"\s*[=+\-@\t\r|%]")


def inert(frame: pd.DataFrame) -> pd.DataFrame:
    """Copies a table for CSV: text that a spreadsheet would run as a formula gets an apostrophe before it.

    Control characters are escaped, since CSV may be printed to a terminal. Numbers stay as they are.

    Example:
        >>> inert(pd.DataFrame({"label": ["=HYPERLINK(1)", "cat"], "novelty": [-1.5, 2.0]}))
                    label  novelty
        0  '=HYPERLINK(1)     -1.5
        1             cat      2.0
    """
    changed = {name: frame[name].map(_inert) for name in frame.columns if not _is_number(frame[name])}
    return frame.assign(**changed) if changed else frame


def _is_number(column: "pd.Series[Any]") -> bool:
    return pd.api.types.is_numeric_dtype(column)


def _inert(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    shown = printable(value, longest=len(value))
    return f"'{shown}" if _FORMULA.match(shown) else shown
