"""Decisions in words."""

from collections.abc import Callable, Mapping
from typing import Any

from offmap.loop.timeline import Decision
from offmap.loop.world import OpenWorld

_MOST_NAMES = 6
# What the library says to callers from Python, and what a page says instead.
_REMEDIES = {
    "groups() lists them": "choose one of the list",
    "undo or rollback it first": "undo the lesson or return to an earlier version first",
    "undo or rollback that version first": "undo that version or return to an earlier one first",
}


def in_words(world: OpenWorld, decision: Decision) -> str:
    """One decision as a sentence without its full stop.

    Example:
        >>> named = Decision(3, "named", {"group": 7, "label": "card swallowed"}, "", True, 1, 0)
        >>> in_words(None, named)
        'Group 7 named “card swallowed”'
    """
    return _WORDS[decision.kind](world, decision.content)


def listed(names: list[Any]) -> str:
    """Some names, and how many more there are.

    Example:
        >>> listed(["a", "b"]), listed(list(range(9)))
        ('a, b', '0, 1, 2, 3, 4, 5 and 3 more')
    """
    more = len(names) - _MOST_NAMES
    shown = ", ".join(str(name) for name in names[:_MOST_NAMES])
    return f"{shown} and {more} more" if more > 0 else shown


def in_page_words(message: str) -> str:
    """An error of the library with the remedies of the page.

    Example:
        >>> in_page_words("there is no group 7; groups() lists them")
        'there is no group 7; choose one of the list'
    """
    for remedy, words in _REMEDIES.items():
        message = message.replace(remedy, words)
    return message


def counted(count: int, noun: str) -> str:
    """How many there are of something.

    Example:
        >>> counted(1, "row"), counted(1200, "row")
        ('1 row', '1,200 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def new_classes(world: OpenWorld, version: int) -> list[Any]:
    """Classes that a version knows and the one before it did not."""
    versions = world.state.versions
    before = max((number for number in versions if number < version), default=None)
    known = set() if before is None else set(versions[before].classes)
    return [label for label in versions[version].classes if label not in known]


def _version(world: OpenWorld, content: Mapping[str, Any]) -> str:
    made = content["version"]
    new = new_classes(world, made) if made in world.state.versions else []
    rows = counted(len(content["rows"]), "row")
    return f"Version {made} made from {rows}" + (f"; new: {listed(new)}" if new else "")


def _moved(world: OpenWorld, content: Mapping[str, Any]) -> str:
    return f"Row {world.state.rows[content['row']].id} moved to group {content['group']}"


def _labelled(world: OpenWorld, content: Mapping[str, Any]) -> str:
    return f"Row {world.state.rows[content['row']].id} labelled “{content['label']}”"


def _split(world: OpenWorld, content: Mapping[str, Any]) -> str:
    parts = " and ".join(str(identity) for identity, _ in content["parts"])
    return f"Group {content['group']} split into {parts}"


_WORDS: dict[str, Callable[[OpenWorld, Mapping[str, Any]], str]] = {
    "taught": _version,
    "learnt": _version,
    "named": lambda world, content: f"Group {content['group']} named “{content['label']}”",
    "merged": lambda world, content: f"Group {content['other']} merged into group {content['group']}",
    "split": _split,
    "moved": _moved,
    "discarded": lambda world, content: f"Group {content['group']} discarded",
    "skipped": lambda world, content: f"Group {content['group']} skipped: it waits at the end of the queue",
    "labelled": _labelled,
    "rolled back": lambda world, content: f"Back to version {content['version']}",
}
