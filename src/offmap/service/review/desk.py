"""What the page remembers of one world between requests; all of it can be computed again."""

import numpy as np

from offmap.loop import GroupView, OpenWorld
from offmap.loop.known_rows import KnownRows
from offmap.loop.plane import Plane
from offmap.loop.state import GroupStatus, Label
from offmap.loop.timeline import Stream, stream
from offmap.monitor import DriftMonitor

LISTS: dict[str, tuple[GroupStatus, ...]] = {
    "open": ("open", "skipped"),
    "named": ("named",),
    "learnt": ("learnt",),
    "discarded": ("discarded",),
}
"""The lists of groups on the page, and which groups each holds."""


class Desk:
    """The tools with which the page looks at one world. Used in the world's own thread only.

    Args:
        world: The world.
    """

    def __init__(self, world: OpenWorld) -> None:
        self.world = world
        self.known = KnownRows(world)
        self.plane = Plane(world)
        self.shown: set[int] = set()
        self._seen: dict[tuple[GroupStatus, ...], tuple[int, list[GroupView]]] = {}
        self._stream: tuple[int, Stream] | None = None
        self._drift: tuple[int | None, int, DriftMonitor] | None = None

    def groups(self, *statuses: GroupStatus) -> list[GroupView]:
        """Groups of some statuses, the most worthwhile first; none before the first lesson."""
        if self.world.state.version is None:
            return []
        before = self._seen.get(statuses)
        if before is not None and before[0] == self.world.revision:
            return before[1]
        found = self.world.groups(*statuses)
        self._seen[statuses] = self.world.revision, found
        return found

    def group(self, identity: int) -> GroupView | None:
        """One group that a person may look at, whatever its status; None if it has no rows any more."""
        found = self.world.state.groups.get(identity)
        if found is None or not found.rows:
            return None
        return next((view for view in self.groups(*statuses_with(found.status)) if view.id == identity), None)

    def shows_images(self) -> bool:
        """Whether rows are images."""
        return self.world.state.version is not None and len(self.world.classifier.input_shape_) > 1

    def labels(self) -> list[Label]:
        """Every class that is known or was named, for the list behind the field of a name."""
        state = self.world.state
        known = state.versions[state.version].classes if state.version is not None else []
        named = [group.name for group in state.groups.values() if group.name is not None]
        return list(dict.fromkeys([*known, *named]))

    def stream(self) -> Stream:
        """What the model said of each row when it came."""
        count = len(self.world.state.rows)
        if self._stream is None or self._stream[0] != count:
            self._stream = count, stream(self.world)
        return self._stream[1]

    def drift(self) -> DriftMonitor | None:
        """The rows that came since the version in use was made, against those that set its threshold."""
        version = self.world.state.version
        if version is None or not len(self.world.classifier.calibration_novelty_):
            return None
        novelty = self.stream().of_version(version).novelty
        if self._drift is None or self._drift[0] != version:
            monitor = DriftMonitor(random_state=0).fit(self.world.classifier.calibration_novelty_)
            self._drift = version, 0, monitor
        _, taken, monitor = self._drift
        fresh = novelty[taken:]
        monitor.update(fresh[np.isfinite(fresh)])
        self._drift = version, len(novelty), monitor
        return monitor


def statuses_with(status: GroupStatus) -> tuple[GroupStatus, ...]:
    """The statuses that are listed together with this one.

    Example:
        >>> statuses_with("skipped"), statuses_with("named")
        (('open', 'skipped'), ('named',))
    """
    return next((listed for listed in LISTS.values() if status in listed), (status,))
