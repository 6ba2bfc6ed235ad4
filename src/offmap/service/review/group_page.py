"""One group beside its queue."""

import math
from collections.abc import Iterable
from typing import Any

from offmap.loop import GroupView
from offmap.loop.state import Label
from offmap.service.review.cards import deck, kind_of, known_cards
from offmap.service.review.desk import LISTS, Desk

ROWS = 24
"""Rows on one page of a group."""
_SUGGESTIONS, _NEAR, _MOST_LISTED = 6, 3, 300


def group_content(desk: Desk, chosen: int | None, show: str, page: int) -> dict[str, Any]:
    """The list, and the chosen group or else the first of the list."""
    # The queue comes first: it puts rows that came in since into groups, and the chosen one may be among those.
    queue = desk.groups(*LISTS["open"])
    view = desk.group(chosen) if chosen is not None else None
    listing = _list_of(view, show)
    if listing != "open":
        queue = desk.groups(*LISTS[listing])
    missing = chosen if chosen is not None and view is None else None
    if view is None and missing is None and queue:
        view = queue[0]
    content = {"queue": queue[:_MOST_LISTED], "left_out": max(0, len(queue) - _MOST_LISTED), "listing": listing}
    content |= {"group": view, "missing": missing, "became": _became(desk, missing), "lists": tuple(LISTS)}
    content |= {"images": desk.shows_images(), "numbers": desk.world.state.numbers}
    return content if view is None else content | _details(desk, view, queue, page)


def suggestions(desk: Desk, view: GroupView, similar: Iterable[int]) -> list[Label]:
    """Names to offer: what the group itself suggests, names of similar groups, and its nearest class.

    Words name a group of texts; features and pixels, which set other groups apart, are no names.
    In a world whose classes are numbers, words are no names; the next free number is offered instead.
    """
    names = desk.world.state.groups
    texts = kind_of(desk.world.rows(view.rows[:1])) == "texts"
    own = [label for label in view.suggestions if texts or label not in view.telling]
    offered: list[Label | None] = [*own, *(names[group].name for group in similar), view.nearest_class]
    known = desk.labels()
    if known and all(isinstance(label, int) for label in known):
        offered = [label for label in offered if isinstance(label, int)]
        offered.insert(int(view.joins_class), 1 + max(label for label in known if isinstance(label, int)))
    return list(dict.fromkeys(label for label in offered if label is not None))[:_SUGGESTIONS]


def _details(desk: Desk, view: GroupView, queue: list[GroupView], page: int) -> dict[str, Any]:
    state = desk.world.state
    pages = max(1, math.ceil(view.size / ROWS))
    page = min(max(page, 1), pages)
    rows = [state.numbers[row] for row in view.rows[(page - 1) * ROWS : page * ROWS]]
    live = [group for group in state.groups.values() if group.status in ("open", "skipped", "named") and group.rows]
    similar = desk.known.similar(state.groups[view.id], live)
    near, columns = known_cards(desk, desk.known.nearest_to_group(state.groups[view.id], _NEAR))
    place = next((place for place, other in enumerate(queue) if other.id == view.id), None)
    return {
        "deck": deck(desk, rows),
        "near": near,
        "near_columns": columns,
        "suggestions": suggestions(desk, view, similar[:3]),
        "similar": similar[:1],
        "rows_page": page,
        "rows_pages": pages,
        "first_row": (page - 1) * ROWS + 1,
        "place": None if place is None else place + 1,
        "previous": queue[place - 1].id if place else None,
        "following": queue[place + 1].id if place is not None and place + 1 < len(queue) else None,
    }


def _list_of(view: GroupView | None, show: str) -> str:
    """The list that holds the group; the one that was asked for if there is no group."""
    if view is None:
        return show if show in LISTS else "open"
    return next(name for name, statuses in LISTS.items() if view.status in statuses)


def _became(desk: Desk, missing: int | None) -> tuple[int, ...]:
    """The groups that hold the rows of a group that was merged or split."""
    found = desk.world.state.groups.get(missing) if missing is not None else None
    return found.became if found is not None else ()
