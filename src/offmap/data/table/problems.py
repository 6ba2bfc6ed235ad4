"""Everything that is wrong with a table, found at once, each with its column, row and remedy."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from offmap.data.table.cells import Read
from offmap.data.table.kinds import kind_of
from offmap.errors import short_repr

__all__ = ["cell_problems", "raise_problems", "repeated_columns", "require_sound"]

_SHOWN = 3
_REMEDY = {
    "number": "mend the cell, or read the column as a category, as with --kind COLUMN=category",
    "boolean": "mend the cell, or read the column as a category, as with --kind COLUMN=category",
    "date": "write all dates of the column in one format, or read it as a category",
}
# For a model that is fitted, the kinds of its columns are settled.
_REMEDY_OF_NEW = "mend the cell, or leave it empty"


def require_sound(frame: pd.DataFrame, kinds: dict[str, str], name: str = "X") -> None:
    """Raises one ``ValueError`` that lists every problem of the rows that a model is to be fitted to.

    Args:
        frame: The features.
        kinds: The kinds that the user chose, by column.
        name: What the message calls the table.

    Example:
        >>> require_sound(pd.DataFrame({"height": ["1.5", "1.7", "tall", "1.6", "1.4"]}), {})
        Traceback (most recent call last):
        ValueError: X has 1 problem: column 'height' is a number, but row 2 holds 'tall' (mend the cell, or read ...
    """
    problems = repeated_columns(frame.columns)
    if not problems:
        for column in frame.columns:
            found = kind_of(frame[column], kinds.get(str(column)))
            if found.read is not None:
                problems += cell_problems(frame[column], found.kind, found.read, found.form)
    raise_problems(problems, name)


def repeated_columns(columns: Iterable[Any]) -> list[str]:
    """Says which names occur twice: nobody could tell such columns apart."""
    counts = Counter(map(str, columns))
    return [
        f"the column name {name!r} occurs {count} times (rename or remove all but one)"
        for name, count in counts.items()
        if count > 1
    ]


def cell_problems(column: Any, kind: str, read: Read, form: str = "", *, fitted: bool = False) -> list[str]:
    """Says which cells of a column are not of its kind, or are infinite, and what to do: once a model is ``fitted``, it
    is too late for another kind.
    """
    problems = []
    if bad := _rows(column, read.unreadable):
        remedy = _REMEDY_OF_NEW if fitted else _REMEDY[kind]
        written = f" written as {form}" if kind == "date" and form not in ("", "ISO8601") else ""
        problems.append(f"column {str(column.name)!r} is a {kind}{written}, but {bad} ({remedy})")
    if bad := _rows(column, np.isinf(read.values)):
        problems.append(f"column {str(column.name)!r} must be finite, but {bad} (leave unknown cells empty)")
    return problems


def raise_problems(problems: list[str], name: str) -> None:
    """Raises a ``ValueError`` with all problems, if there are any."""
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise ValueError(f"{name} has {count}: {'; '.join(problems)}")


def _rows(column: Any, wrong: Any) -> str:
    places = np.flatnonzero(wrong)
    if not len(places):
        return ""
    cells = [(column.index[place], _plain(column.iloc[place])) for place in places[:_SHOWN]]
    shown = ", ".join(f"row {row} holds {short_repr(cell)}" for row, cell in cells)
    return shown + (f" and {len(places) - _SHOWN:,} more rows do likewise" if len(places) > _SHOWN else "")


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell
