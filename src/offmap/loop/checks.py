"""Which row, which group, which rows: what the user names, found or refused with one clear error."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from offmap.loop.rows import require_encodable, same_row
from offmap.loop.state import LIVE, Group, Label, State, Version
from offmap.store import Journal


def live_group(state: State, identity: int) -> Group:
    """The group of that id, if a person may still act on it."""
    numbered = isinstance(identity, int | np.integer) and not isinstance(identity, bool)
    group = state.groups.get(identity) if numbered else None
    if group is None:
        raise ValueError(f"there is no group {identity!r}; groups() lists them")
    if group.status == "learnt":
        raise ValueError(f"group {identity} was learnt in version {group.version}; undo or rollback it first")
    if group.status not in LIVE:
        became = " and ".join(map(str, group.became))
        raise ValueError(f"group {identity} was {group.status}; its rows are in group {became}")
    return group


def number_of(state: State, identity: Any) -> int:
    """The number of the row that the user calls ``identity``."""
    known = isinstance(identity, str | int | np.integer)
    if not known or identity not in state.numbers:
        raise ValueError(f"no row with the id {identity!r} was observed")
    return state.numbers[identity]


def require_untaught(state: State, number: int) -> None:
    """Refuses to change a row that the model has learnt already."""
    if number in state.taught:
        raise ValueError(f"row {state.rows[number].id!r} was learnt already; undo or rollback that version first")


def ids_of(count: int, ids: Iterable[Label] | None, state: State, first: int) -> list[Label]:
    """One id per row: those given, or numbers from ``first`` on that no row has."""
    if ids is None:
        first = max(first, state.largest_id + 1)
        return list(range(first, first + count))
    names = [identity.item() if isinstance(identity, np.generic) else identity for identity in ids]
    if len(names) != count:
        raise ValueError(f"ids must hold one id per row of X; got {len(names)} for {count} rows")
    for identity in names:
        if isinstance(identity, bool) or not isinstance(identity, str | int):
            raise ValueError(f"ids must be integers or strings; got {identity!r}")
        if isinstance(identity, str):
            require_encodable("the id", identity)
    return names


def new_rows(names: Sequence[Label], packed: Sequence[bytes], state: State, journal: Journal) -> list[int]:
    """Places of the rows that were not observed before; an id that stands for another row is refused."""
    before = {name: state.numbers[name] for name in names if name in state.numbers}
    stored = journal.rows(before.values())
    seen = {name: stored[number] for name, number in before.items()}
    fresh = []
    for place, (name, row) in enumerate(zip(names, packed, strict=True)):
        if name not in seen:
            fresh.append(place)
        elif not same_row(seen[name], row):
            raise ValueError(f"ids holds {name!r}, which is the id of another row; give each row an id of its own")
        seen[name] = row
    return fresh


def earlier_version(state: State, version: int) -> Version:
    """A version that is not newer than the one in use."""
    known = [number for number in state.versions if number <= (state.version or 0)]
    if version not in known:
        raise ValueError(f"version must be one of {known}; got {version!r}")
    return state.versions[version]


def nothing_to_learn(state: State, least: int, audits: bool) -> str:
    """Why there is nothing to learn, where audit rows train as well or do not."""
    pending = Counter(state.training_rows(audits).values())
    if not pending:
        return "there is nothing to learn: name a group or label rows first"
    label, count = pending.most_common(1)[0]
    return f"there is nothing to learn: a new class needs {least} rows, and {label!r} has {count}"
