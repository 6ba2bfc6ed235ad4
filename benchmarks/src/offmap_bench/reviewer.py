"""A simulated person who reviews the groups of a world: sees a few rows of each, and names it if they agree."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from offmap.loop import GroupView, OpenWorld


@dataclass
class Reviewer:
    """Counts what reviewing costs: decisions, and rows that were read.

    Args:
        truth: The class of each row by its id.
        shown: Rows of a group that the person reads, evenly from the centre to the edge; 1 is the row at the centre.
        agree: How many of them must be of one class for the group to be named.
        decisions: Decisions so far: names, splits, groups put off, and labels of audit rows.
        read: Ids of the rows read so far; a row that is seen twice is read once.
        purity: Share of the rows of each named group that are of its class.
    """

    truth: dict[Any, Any]
    shown: int = 5
    agree: int = 4
    decisions: int = 0
    read: set[Any] = field(default_factory=set)
    purity: list[float] = field(default_factory=list)

    def review(self, world: OpenWorld, most: int) -> None:
        """Names, splits or puts off at most ``most`` groups, large ones first; halves of a group are looked at once."""
        queue = [(view, True) for view in world.groups()]
        while queue and most > 0:
            view, may_split = queue.pop(0)
            most -= 1
            self.decisions += 1
            label = self._agreed(view)
            if label is not None:
                world.name(view.id, label)
                self.purity.append(sum(self.truth[row] == label for row in view.rows) / view.size)
            elif may_split and view.size >= 2 * self.shown:
                halves = world.split(view.id)
                queue = [(half, False) for half in world.groups() if half.id in halves] + queue
            else:
                world.skip(view.id)

    def audit(self, world: OpenWorld, rows: int) -> None:
        """Labels random rows of the stream."""
        for row in world.audit(rows) if rows else ():
            self.decisions += 1
            self.read.add(row.id)
            world.label(row.id, self.truth[row.id])

    def _agreed(self, view: GroupView) -> Any | None:
        places = np.linspace(0, view.size - 1, self.shown).round().astype(int) if self.shown > 1 else np.zeros(1, int)
        shown = [view.rows[place] for place in np.unique(places)]
        self.read.update(shown)
        label, count = Counter(self.truth[row] for row in shown).most_common(1)[0]
        return label if count >= min(self.agree, len(shown)) else None
