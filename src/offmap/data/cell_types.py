"""The type of a column whose cells are texts: truth values, integers, numbers or texts.

It depends on all cells of the column, and what is known of its parts adds up, so that a table that is read in batches
gets the types that it would get as a whole.
"""

from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from offmap.data.table.cells import as_numbers

__all__ = ["CellTypes", "typed"]


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
    if not pd.api.types.is_string_dtype(column) and column.dtype != object:
        return column
    found = known or CellTypes.of(column)
    if found.truth:
        return column.astype(str).str.lower() == "true"
    if not found.numbers or found.missing or found.codes:
        return column
    values = column.astype(str).astype(np.int64) if found.whole else as_numbers(column).values
    return pd.Series(values, index=column.index)
