"""The type of a column whose cells are texts: truth values, integers, numbers or texts.

It depends on all cells of the column, and what is known of its parts adds up, so that a table that is read in batches
gets the types that it would get as a whole.
"""

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from offmap.data.table.cells import as_numbers

__all__ = ["CellTypes", "all_typed", "is_text", "typed"]

_INTEGER = r"[+-]?(?:0|[1-9]\d{0,17})"
_NUMBER = r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
# A line break ends each cell: before Python 3.11.4 a possessive group that fails at the end keeps what it had read.
_INTEGERS, _NUMBERS = (re.compile(rf"(?:{cell}\n)++", re.ASCII) for cell in (_INTEGER, _NUMBER))


class CellTypes(NamedTuple):
    """What the cells of a column, or of a part of it, have in common.

    Args:
        truth: Every cell is "true" or "false".
        numbers: Every cell is a number or missing.
        missing: Every cell is missing.
        codes: Some cell is a number with a leading zero, as in a code.
        whole: Every cell is an integer that 64 bits hold.

    Example:
        >>> first, second = CellTypes.of(pd.Series(["7", "8"])), CellTypes.of(pd.Series(["7.5"]))
        >>> first.whole, first.joined(second).whole
        (True, False)
    """

    truth: bool
    numbers: bool
    missing: bool
    codes: bool
    whole: bool

    @classmethod
    def of(cls, column: Any) -> Self:
        """Looks at every cell of a column of texts."""
        words, read = column.astype(str), as_numbers(column)
        complete = not read.missing.any() and np.array_equal(read.values, np.round(read.values))
        return cls(
            truth=bool(words.str.lower().isin(["true", "false"]).all()),
            numbers=not read.unreadable.any(),
            missing=bool(read.missing.all()),
            codes=bool(words.str.fullmatch(r"\s*[+-]?0\d+\s*").any()),
            whole=complete and bool(words.str.fullmatch(r"\s*[+-]?\d{1,18}\s*").all()),
        )

    def joined(self, other: "CellTypes") -> "CellTypes":
        """What the cells of both parts have in common."""
        both = [mine and its for mine, its in zip(self, other, strict=True)]
        return CellTypes(*both)._replace(codes=self.codes or other.codes)


def typed(column: Any, known: CellTypes | None = None) -> Any:
    """The column as numbers if every cell is one; codes with a leading zero stay texts, and so do gaps in texts.

    Args:
        column: The column; one that is not of texts stays as it is.
        known: What all cells have in common, if ``column`` is a part.

    Example:
        >>> typed(pd.Series(["7", "8"])).tolist(), typed(pd.Series(["07", "8"])).tolist()
        ([7, 8], ['07', '8'])
    """
    if not is_text(column.dtype):
        return column
    if known is None and (numbers := _plain_numbers(column.tolist())) is not None:
        return pd.Series(numbers, index=column.index)
    found = known or CellTypes.of(column)
    if found.truth:
        return column.astype(str).str.lower() == "true"
    if not found.numbers or found.missing or found.codes:
        return column
    values = column.astype(str).astype(np.int64) if found.whole else as_numbers(column).values
    return pd.Series(values, index=column.index)


def all_typed(
    frame: pd.DataFrame, as_they_are: Collection[str], types: Mapping[str, CellTypes] = MappingProxyType({})
) -> pd.DataFrame:
    """The table with its columns typed, but for those named.

    Args:
        frame: The cells.
        as_they_are: Columns that stay texts.
        types: What is known of the cells of columns of which ``frame`` holds a part.
    """
    if not any(is_text(kind) for kind in frame.dtypes):
        return frame  # a new frame would copy it
    columns = {
        name: column if name in as_they_are else typed(column, types.get(str(name))) for name, column in frame.items()
    }
    return pd.DataFrame(columns, index=frame.index)


def is_text(kind: Any) -> bool:
    """Whether columns of this type can hold texts, which are to be typed."""
    return bool(pd.api.types.is_object_dtype(kind) or pd.api.types.is_string_dtype(kind))


def _plain_numbers(cells: list[Any]) -> NDArray[Any] | None:
    """The common case, numbers without gaps, in one pass over the joined cells; None for all other columns."""
    try:
        joined = "\n".join(cells) + "\n"
    except TypeError:
        return None
    if joined.count("\n") != len(cells):
        return None  # a cell of several lines
    if _INTEGERS.fullmatch(joined):
        return np.array(cells, dtype=np.int64)
    return np.array(cells, dtype=np.float64) if _NUMBERS.fullmatch(joined) else None
