"""From the rows that wait to the groups that a person sees."""

from collections.abc import Sequence

import numpy as np

from offmap.loop.grouping import UNGROUPED, join, propose
from offmap.loop.ledger import Ledger
from offmap.loop.state import Group, GroupStatus, State
from offmap.loop.views import GroupView, view


def group_new_rows(ledger: Ledger) -> None:
    """Lets rows that came since the last grouping join a group, and proposes groups of the rest."""
    ledger.refresh()
    if _has_new_rows(ledger.state):
        with ledger.turn():
            # Another process may have grouped them while this one waited for its turn.
            if _has_new_rows(ledger.state):
                _group(ledger)


def _has_new_rows(state: State) -> bool:
    return state.grouped < max(state.rows, default=0) and bool(state.ungrouped())


def _group(ledger: Ledger) -> None:
    state = ledger.state
    numbers, upto = state.ungrouped(), max(state.rows)
    spread, _ = ledger.spread()
    X = ledger.memory.vectors(ledger.classifier, numbers)
    live = [group for group in state.groups.values() if group.status in ("open", "skipped", "named") and group.rows]
    members = {group.id: ledger.memory.vectors(ledger.classifier, group.rows) for group in live}
    joined = join(X, members, spread)
    rest = np.setdiff1d(np.arange(len(numbers)), [place for places in joined.values() for place in places])
    rng = np.random.default_rng([ledger.settings["seed"], upto])
    codes = propose(X[rest], spread, min_size=ledger.settings["min_group"], rng=rng)
    first = ledger.history.next_group
    new = [
        (first + code, [numbers[place] for place in rest[codes == code]]) for code in range(codes.max(initial=-1) + 1)
    ]
    content = {
        "upto": upto,
        "joined": [(group, [numbers[place] for place in places]) for group, places in joined.items()],
        "new": new,
        "ungrouped": int((codes == UNGROUPED).sum()),
    }
    ledger.record("grouped", content)


def queue(ledger: Ledger, statuses: Sequence[GroupStatus]) -> list[GroupView]:
    """Groups of some statuses as a person sees them, skipped ones last and those that teach most first.

    A row that the model may well know teaches little: each row counts with one less its p-value.
    """
    state = ledger.state
    found = [group for group in state.groups.values() if group.status in statuses and group.rows]
    unusual = {group.id: sum(1 - (state.rows[row].p_value or 0.0) for row in group.rows) for group in found}
    return sorted(views(ledger, found), key=lambda view: (view.status == "skipped", -unusual[view.id], view.id))


def views(ledger: Ledger, groups: list[Group]) -> list[GroupView]:
    """What a person sees of groups."""
    if not groups:
        return []
    spread, classes = ledger.spread()
    portraits = ledger.portraits.of(groups, spread, ledger.classifier, ledger.state.columns)
    limit = max(ledger.settings["review"], ledger.classifier.alpha)
    return view(groups, portraits, ledger.state, limit, spread, classes)
