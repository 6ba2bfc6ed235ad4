"""What each entry of the journal does to the state. An entry holds outcomes, so nothing is computed again."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from offmap.loop.state import Group, Row, State, Version
from offmap.store import Entry

Content = Mapping[str, Any]
Apply = Callable[[State, Content, int], None]


def _observed(state: State, content: Content, entry: int) -> None:
    columns = ("ids", "novel", "closest", "novelty", "p_value", "waits")
    for number, *values in zip(content["rows"], *(content[name] for name in columns), strict=True):
        state.rows[number] = Row(values[0], content["version"], *values[1:])
        state.numbers[values[0]] = number
        if isinstance(values[0], int):
            state.largest_id = max(state.largest_id, values[0])


def _grouped(state: State, content: Content, entry: int) -> None:
    state.grouped = max(state.grouped, content["upto"])
    for identity, rows in content["new"]:
        state.groups[identity] = Group(identity, [])
        _place(state, identity, rows)
    for identity, rows in content["joined"]:
        # The group may be gone since a decision was undone; its rows then wait for the next grouping.
        if identity in state.groups:
            _place(state, identity, rows)
        else:
            state.grouped = min(state.grouped, *(number - 1 for number in rows))


def _named(state: State, content: Content, entry: int) -> None:
    group = state.groups[content["group"]]
    group.status, group.name = "named", content["label"]


def _merged(state: State, content: Content, entry: int) -> None:
    kept, gone = state.groups[content["group"]], state.groups[content["other"]]
    moved = [number for number in gone.rows if state.rows[number].moved]
    _place(state, kept.id, list(gone.rows))
    for number in moved:
        state.rows[number].moved = True
    gone.status, gone.became = "merged", (kept.id,)


def _split(state: State, content: Content, entry: int) -> None:
    whole = state.groups[content["group"]]
    for identity, rows in content["parts"]:
        state.groups[identity] = Group(identity, [])
        _place(state, identity, rows)
    whole.status, whole.became = "split", tuple(identity for identity, _ in content["parts"])


def _moved(state: State, content: Content, entry: int) -> None:
    _place(state, content["group"], [content["row"]])
    state.rows[content["row"]].moved = True


def _discarded(state: State, content: Content, entry: int) -> None:
    state.groups[content["group"]].status = "discarded"


def _skipped(state: State, content: Content, entry: int) -> None:
    group = state.groups[content["group"]]
    group.status, group.name = "skipped", None


def _audited(state: State, content: Content, entry: int) -> None:
    for number in content["rows"]:
        state.rows[number].audited = True


def _labelled(state: State, content: Content, entry: int) -> None:
    state.rows[content["row"]].label = content["label"]


def _taught(state: State, content: Content, entry: int) -> None:
    if state.version is None:
        state.columns = content.get("columns")
    _new_version(state, content, entry, "taught")


def _learnt(state: State, content: Content, entry: int) -> None:
    _new_version(state, content, entry, "learnt")


def _new_version(state: State, content: Content, entry: int, kind: Literal["taught", "learnt"]) -> None:
    number = content["version"]
    lesson = dict(zip(content["rows"], content["labels"], strict=True))
    state.versions[number] = Version(
        number=number,
        digest=content["digest"],
        kind=kind,
        entry=entry,
        first_row=content["first_row"],
        classes=content["classes"],
        calibration=content["calibration"],
        audits=content["audits"],
        lesson=lesson,
        before=state.version,
    )
    state.version, state.first_row = number, content["first_row"]
    state.taught.update(lesson)
    for identity in content["groups"]:
        state.groups[identity].status, state.groups[identity].version = "learnt", number
    _assess(state, content)


def _rolled_back(state: State, content: Content, entry: int) -> None:
    lineage = state.lineage(content["version"])
    state.version, state.taught = content["version"], {}
    state.first_row = lineage[-1].first_row
    for version in lineage:
        state.taught.update(version.lesson)
    kept = {version.number for version in lineage}
    for group in state.groups.values():
        if group.status in ("named", "learnt") and group.version not in kept:
            # Two versions may have learnt the same group, and the one that is returned to may be the other one.
            known = any(number in state.taught for number in group.rows)
            group.status, group.version = ("learnt", content["version"]) if known else ("named", None)
    _assess(state, content)


def _assess(state: State, content: Content) -> None:
    """Takes what the version in use says of rows that came before it; rows that it knows leave their groups.

    A row that a person moved stays: the person has said where it belongs.
    """
    for number, novel, closest, novelty, p_value, waits in content["assessed"]:
        row = state.rows[number]
        if waits and not row.waits:
            # It waits again: the grouping has to look at it once more.
            state.grouped = min(state.grouped, number - 1)
        row.version, row.novel, row.closest = content["version"], novel, closest
        row.novelty, row.p_value, row.waits = novelty, p_value, waits
        if not waits and not row.moved:
            _leave(state, number)


def _reassessed(state: State, content: Content, entry: int) -> None:
    """After an undo or redo of a version: what the version in use says of rows that another one had assessed."""
    outdated = set(state.outdated())
    _assess(state, {**content, "assessed": [row for row in content["assessed"] if row[0] in outdated]})


def _place(state: State, identity: int, rows: list[int]) -> None:
    for number in rows:
        _leave(state, number)
        state.groups[identity].rows.append(number)
        state.rows[number].group = identity


def _leave(state: State, number: int) -> None:
    row = state.rows[number]
    if row.group is not None:
        state.groups[row.group].rows.remove(number)
        row.group, row.moved = None, False


# What a person decides can be undone; what the stream brought, and what followed from it by itself, cannot.
DECISIONS: dict[str, Apply] = {
    "taught": _taught,
    "named": _named,
    "merged": _merged,
    "split": _split,
    "moved": _moved,
    "discarded": _discarded,
    "skipped": _skipped,
    "labelled": _labelled,
    "learnt": _learnt,
    "rolled back": _rolled_back,
}
FACTS: dict[str, Apply] = {
    "observed": _observed,
    "grouped": _grouped,
    "audited": _audited,
    "undone": _reassessed,
    "redone": _reassessed,
}


def apply(state: State, entry: Entry) -> None:
    """Changes ``state`` as ``entry`` says."""
    (DECISIONS | FACTS)[entry.kind](state, entry.content, entry.number)
