"""Rows as a person sees them: texts as text, images as pictures, feature rows as a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from offmap.loop.known_rows import KnownRow
from offmap.loop.state import Row
from offmap.report.gallery import DEVIATES, most_telling
from offmap.report.markup import number as in_digits
from offmap.report.pictures import as_bytes, pictures, png
from offmap.service.review.desk import Desk

Kind = Literal["texts", "images", "table"]


@dataclass(frozen=True)
class Cell:
    """One value of a table; ``shift`` is "▲" or "▼" where it lies far from the known rows."""

    value: str
    shift: str = ""


@dataclass(frozen=True)
class Content:
    """A row itself: its text, its picture or its cells."""

    text: str = ""
    picture: Markup | None = None
    cells: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class Near:
    """A known row beside an unknown one."""

    label: str
    content: Content


@dataclass(frozen=True)
class Card:
    """One observed row.

    Args:
        number: Its number in the journal.
        row: What is known of it.
        p_value: Its p-value in words.
        content: The row itself.
        near: The nearest known rows.
    """

    number: int
    row: Row
    p_value: str
    content: Content
    near: tuple[Near, ...]


@dataclass(frozen=True)
class Deck:
    """Cards of the same kind, and the heads of the columns if they are rows of a table."""

    kind: Kind
    cards: list[Card]
    columns: tuple[str, ...] = ()


def deck(desk: Desk, numbers: Sequence[int], near: int = 1) -> Deck:
    """The cards of rows, each with its nearest known rows."""
    if not numbers:
        return Deck("texts", [])
    state = desk.world.state
    desk.shown.update(numbers)
    rows = desk.world.rows([state.rows[number].id for number in numbers])
    known = desk.known.nearest(numbers, near) if near else [[] for _ in numbers]
    flat = [near for found in known for near in found]
    words = [*(f"row {state.rows[number].id}" for number in numbers), *map(_described, flat)]
    contents, columns = _contents(desk, [*rows, *(near.row for near in flat)], words)
    others = iter(contents[len(numbers) :])
    cards = [
        Card(number, state.rows[number], p_value_of(state.rows[number]), content, _nearest(found, others))
        for number, content, found in zip(numbers, contents, known, strict=False)
    ]
    return Deck(kind_of(rows), cards, columns)


def known_cards(desk: Desk, found: Sequence[KnownRow]) -> tuple[list[Near], tuple[str, ...]]:
    """Known rows by themselves, and the heads of their columns."""
    contents, columns = _contents(desk, [near.row for near in found], list(map(_described, found)))
    return [Near(str(near.label), content) for near, content in zip(found, contents, strict=True)], columns


def picture_of(desk: Desk, number: int) -> bytes | None:
    """A row as a small PNG file; None if there is no such row, or it is no image."""
    row = desk.world.state.rows.get(number)
    if row is None or not desk.shows_images():
        return None
    return png(as_bytes(desk.world.rows([row.id]))[0])


def kind_of(rows: NDArray[Any]) -> Kind:
    """What rows are.

    Example:
        >>> kind_of(np.zeros((2, 8, 8))), kind_of(np.array(["a text"])), kind_of(np.zeros((2, 3)))
        ('images', 'texts', 'table')
    """
    return "texts" if rows.ndim == 1 else "images" if rows.ndim > 2 else "table"


def p_value_of(row: Row) -> str:
    """The p-value with two significant digits."""
    return "–" if row.p_value is None else f"{row.p_value:.2g}"


def _nearest(found: Sequence[KnownRow], contents: Any) -> tuple[Near, ...]:
    return tuple(Near(str(near.label), next(contents)) for near in found)


def _described(near: KnownRow) -> str:
    return f"known row of class {near.label}"


def _contents(desk: Desk, rows: Sequence[Any], words: list[str]) -> tuple[list[Content], tuple[str, ...]]:
    """What to show of rows, described by words where it is a picture, and the heads of the columns."""
    if not rows:
        return [], ()
    together = np.asarray(rows)
    kind = kind_of(together)
    if kind == "texts":
        return [Content(text=str(row)) for row in together], ()
    if kind == "images":
        return [Content(picture=Markup(shown)) for shown in pictures(together, words)], ()
    shift = desk.known.shift(together.astype(np.float64))
    chosen = most_telling(shift)
    cells = [Content(cells=tuple(_cell(row[c], shift[line, c]) for c in chosen)) for line, row in enumerate(together)]
    names = desk.world.state.columns
    return cells, tuple(f"feature {place}" if names is None else names[place] for place in chosen)


def _cell(value: float, shift: float) -> Cell:
    return Cell(in_digits(float(value)), "" if abs(shift) < DEVIATES else "▲" if shift > 0 else "▼")
