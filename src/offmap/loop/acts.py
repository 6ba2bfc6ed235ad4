"""What was decided, in sentences, and whether it makes another's act stale."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from offmap import parameters
from offmap.loop.state import Label, State
from offmap.parameters import Natural
from offmap.store import Entry

# "group" and its number, or "row" and the user's id of it.
Subject = tuple[str, Label]


@dataclass(frozen=True)
class Act:
    """One decision, or one that was undone or redone.

    Args:
        number: The revision that it made.
        kind: What happened: "named", "merged", "undone", …
        about: The decision itself, or the one that was undone or redone.
        at: When, in UTC, as ISO 8601 writes it.
    """

    number: int
    kind: str
    about: Entry
    at: str

    def subjects(self, state: State) -> frozenset[Subject] | None:
        """The groups and rows that it changed by name; None if it may have changed any."""
        content, kind = self.about.content, self.about.kind
        if kind in ("taught", "learnt", "rolled back"):
            return None
        groups = [content[name] for name in ("group", "other") if name in content]
        groups += [identity for identity, _ in content.get("parts", ())]
        rows = [state.rows[content["row"]].id] if "row" in content else []
        return frozenset([*(("group", group) for group in groups), *(("row", row) for row in rows)])

    def told(self, state: State) -> str:
        """The act as a person would tell it."""
        done = _told(self.about, state)
        return f"{self.kind}: {done}" if self.kind in ("undone", "redone") else done


class StaleActError(ValueError):
    """An act on a group or row that somebody changed after its author saw it; nothing was done.

    Args:
        expected: The revision that the act was decided upon.
        revision: The revision now.
        acts: What was done in between to what the act is about, one sentence each.
    """

    def __init__(self, expected: int, revision: int, acts: Sequence[str]) -> None:
        super().__init__(
            f"expected is revision {expected}, but the world is at {revision}: {'; '.join(acts)}. Nothing was changed: "
            "look again, and repeat the act if it is still right"
        )
        self.expected, self.revision, self.acts = expected, revision, tuple(acts)


def require_current(
    acts: Iterable[Act], state: State, *, expected: int | None, revision: int, subjects: Iterable[Subject] = ()
) -> None:
    """Refuses an act if what it is about has changed since the reader saw it.

    Rows that the stream brought meanwhile, and groups that they joined, make nothing stale, or a busy stream would
    refuse every act. Neither does a decision on another group.

    Args:
        acts: What was decided so far.
        state: The state, for the names of rows.
        expected: The revision that the reader saw; None refuses nothing.
        revision: The revision now.
        subjects: What the act is about; empty if it is about everything decided so far, as ``undo`` and ``learn`` are.
    """
    if expected is None:
        return
    parameters.require("expected", expected, Natural)
    if expected > revision:
        raise ValueError(f"expected is revision {expected}, but the world is at {revision}; give one that it has had")
    wanted = frozenset(subjects)
    later = [act for act in acts if act.number > expected]
    found = [act for act in later if not wanted or (touched := act.subjects(state)) is None or touched & wanted]
    if found:
        raise StaleActError(expected, revision, [act.told(state) for act in found])


def _told(entry: Entry, state: State) -> str:
    content: Any = entry.content
    row = f"row {state.rows[content['row']].id!r}" if "row" in content else ""
    match entry.kind:
        case "named":
            return f"group {content['group']} was named {content['label']!r}"
        case "merged":
            return f"group {content['other']} was merged into group {content['group']}"
        case "split":
            parts = " and ".join(str(identity) for identity, _ in content["parts"])
            return f"group {content['group']} was split into {parts}"
        case "moved":
            return f"{row} was moved into group {content['group']}"
        case "labelled":
            return f"{row} was labelled {content['label']!r}"
        case "discarded" | "skipped":
            return f"group {content['group']} was {entry.kind}"
        case "rolled back":
            return f"the model was rolled back to version {content['version']}"
        case _:
            return f"version {content['version']} was {entry.kind}"
