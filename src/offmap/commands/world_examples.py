"""Rows of a world on a terminal: texts whole, numbers with the names of their columns, images by their size."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offmap.loop import OpenWorld

# Between examples, since texts hold commas.
_BETWEEN = " | "


def plain_row(row: Any) -> str | list[float]:
    """A row as JSON has it.

    Example:
        >>> import numpy as np
        >>> plain_row(np.zeros((28, 28))), plain_row(np.array([1.5, 2.0]))
        ('image 28 × 28', [1.5, 2.0])
    """
    if isinstance(row, str):
        return str(row)
    values: list[float] = row.tolist()
    return values if row.ndim == 1 else f"image {' × '.join(map(str, row.shape))}"


def shown_row(row: Any, columns: Sequence[str] | None) -> str | list[float] | Mapping[str, float]:
    """A row as a table shows it; numbers have the names of their columns if they are known."""
    plain = plain_row(row)
    return plain if isinstance(plain, str) or columns is None else dict(zip(columns, plain, strict=True))


def examples(opened: "OpenWorld", ids: Sequence[Any]) -> str:
    """Rows by their ids, texts with the text."""
    if not ids:
        return ""
    rows = opened.rows(ids)
    texts = rows.ndim == 1
    return _BETWEEN.join(f"{each}: {row}" if texts else str(each) for each, row in zip(ids, rows, strict=True))
