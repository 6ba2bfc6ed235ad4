"""What a person decides about groups and rows."""

from typing import Any

from offmap.loop.checks import live_group, number_of, require_untaught
from offmap.loop.class_names import checked_label
from offmap.loop.grouping import halves
from offmap.loop.ledger import Ledger
from offmap.loop.state import Label


def name(ledger: Ledger, group: int, label: Label) -> None:
    """Says which class a group is."""
    found = live_group(ledger.state, group)
    ledger.record("named", {"group": found.id, "label": checked_label(ledger, label, group=found.id)})


def merge(ledger: Ledger, group: int, other: int) -> None:
    """Moves all rows of ``other`` into ``group``."""
    kept, gone = live_group(ledger.state, group), live_group(ledger.state, other)
    if kept.id == gone.id:
        raise ValueError(f"group {group} cannot be merged with itself; name two groups")
    if kept.status == "discarded":
        raise ValueError(f"group {group} was discarded; name or skip it first, or merge it into group {other}")
    if kept.name is not None and gone.name is not None and kept.name != gone.name:
        raise ValueError(
            f"group {group} is named {kept.name!r} and group {other} {gone.name!r}; give both the same name first"
        )
    ledger.record("merged", {"group": kept.id, "other": gone.id})


def split(ledger: Ledger, group: int) -> tuple[int, int]:
    """Makes two groups of one, where its rows are furthest apart; returns their ids."""
    found = live_group(ledger.state, group)
    if len(found.rows) < 2:
        raise ValueError(f"group {group} has {len(found.rows)} row(s); it takes two to split it")
    side = halves(ledger.memory.vectors(ledger.classifier, found.rows), ledger.spread()[0])
    first = ledger.history.next_group
    parts = [(first + half, [row for row, s in zip(found.rows, side, strict=True) if s == half]) for half in (0, 1)]
    ledger.record("split", {"group": found.id, "parts": parts})
    return first, first + 1


def move(ledger: Ledger, row: Label, group: int) -> None:
    """Moves one row into a group."""
    number, found = number_of(ledger.state, row), live_group(ledger.state, group)
    require_untaught(ledger.state, number)
    ledger.record("moved", {"row": number, "group": found.id})


def discard(ledger: Ledger, group: int) -> None:
    """Takes a group out of the queue."""
    ledger.record("discarded", {"group": live_group(ledger.state, group).id})


def skip(ledger: Ledger, group: int) -> None:
    """Puts a group at the end of the queue."""
    ledger.record("skipped", {"group": live_group(ledger.state, group).id})


def label(ledger: Ledger, row: Label, label: Label) -> None:
    """Says which class one row is of."""
    number = number_of(ledger.state, row)
    require_untaught(ledger.state, number)
    ledger.record("labelled", {"row": number, "label": checked_label(ledger, label, row=number)})


def undo(ledger: Ledger) -> str | None:
    """Takes the last decision back and says what it was; None if there is none."""
    if not ledger.history.done:
        return None
    *rest, last = ledger.history.done
    kind = ledger.history.decision(last).kind
    ledger.record("undone", _assessed_again(ledger, kind, rest))
    return kind


def redo(ledger: Ledger) -> str | None:
    """Makes the decision again that was undone last and says what it was; None if there is none."""
    if not ledger.history.undone:
        return None
    last = ledger.history.undone[-1]
    kind = ledger.history.decision(last).kind
    ledger.record("redone", _assessed_again(ledger, kind, [*ledger.history.done, last]))
    return kind


def _assessed_again(ledger: Ledger, kind: str, decisions: list[int]) -> dict[str, Any]:
    """What the version that is in use after these decisions says of rows that another version had assessed."""
    if kind not in ("taught", "learnt", "rolled back"):
        return {}
    state = ledger.history.built(decisions)
    numbers = state.outdated()
    if state.version is None or not numbers:
        return {}
    model = ledger.home.read_model(state.versions[state.version])
    return {"version": state.version, "assessed": ledger.assessed(model, numbers)}
