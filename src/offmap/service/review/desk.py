"""What the page remembers of one world between requests; all of it can be computed again."""

import numpy as np

from offmap.loop import GroupView, OpenWorld, Status
from offmap.loop.known_rows import KnownRows
from offmap.loop.plane import Plane
from offmap.loop.state import Label
from offmap.loop.timeline import Stream, stream
from offmap.monitor import DriftMonitor


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
        self._stream: tuple[int, Stream] | None = None
        self._drift: tuple[tuple[int | None, int], DriftMonitor | None] | None = None

    def status(self) -> Status:
        """Counts and the promise."""
        return self.world.status()

    def queue(self) -> list[GroupView]:
        """The groups that wait for a decision, the most worthwhile first; none before the first lesson."""
        return self.world.groups() if self.world.state.version is not None else []

    def group(self, identity: int) -> GroupView | None:
        """One group that a person may look at, whatever its status; None if it has no rows any more."""
        found = self.world.state.groups.get(identity)
        if found is None or not found.rows:
            return None
        return next((view for view in self.world.groups(found.status) if view.id == identity), None)

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
        seen = self.stream().of_version(version).novelty
        key = version, len(seen)
        if self._drift is None or self._drift[0] != key:
            self._drift = key, _monitor(self.world, seen)
        return self._drift[1]


def _monitor(world: OpenWorld, novelty: np.ndarray[tuple[int], np.dtype[np.float64]]) -> DriftMonitor | None:
    if world.state.version is None or not len(world.classifier.calibration_novelty_):
        return None
    monitor = DriftMonitor(random_state=0).fit(world.classifier.calibration_novelty_)
    monitor.update(novelty[np.isfinite(novelty)])
    return monitor
