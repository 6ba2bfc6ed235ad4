"""Text in tables that spreadsheets open: it must stay text."""

import re
from typing import Any

import pandas as pd

from offmap.errors import printable

# What a spreadsheet takes for the start of a formula.
_FORMULA = re.compile(r"\s*[=+\-@\t\r|%]")
# Columns that are kept from a CSV file are text, also those of numbers.
_SIGNED_NUMBER = re.compile(r" *[+-]([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *")


def inert(frame: pd.DataFrame) -> pd.DataFrame:
    """Copies a table for CSV: text that a spreadsheet would run as a formula gets an apostrophe before it.

    Control characters are escaped, since CSV may be printed to a terminal. Numbers stay as they are, also where
    they are text.

    Example:
        >>> inert(pd.DataFrame({"label": ["=HYPERLINK(1)", "cat"], "paid": ["-1.5", "2"], "novelty": [-1.5, 2.0]}))
                    label  paid  novelty
        0  '=HYPERLINK(1)  -1.5     -1.5
        1             cat     2      2.0
    """
    changed = {name: frame[name].map(_inert) for name in frame.columns if not _is_number(frame[name])}
    return frame.assign(**changed) if changed else frame


def _is_number(column: "pd.Series[Any]") -> bool:
    return pd.api.types.is_numeric_dtype(column)


def _inert(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    shown = printable(value, longest=len(value))
    return f"'{shown}" if _FORMULA.match(shown) and not _SIGNED_NUMBER.fullmatch(shown) else shown
