"""Tells the rest of the service what became of a world: its version in use, and its groups."""

from collections.abc import Callable
from functools import partial
from typing import Any

from offmap.loop import OpenWorld
from offmap.loop.access import model_in_use, model_of
from offmap.service.metrics import Metrics
from offmap.service.models import Models, Slot
from offmap.service.worlds import WorldHandle


class Publisher:
    """Puts each new version of a world into use for scoring, and counts its groups.

    Args:
        models: The models.
        metrics: The counts.
    """

    def __init__(self, models: Models, metrics: Metrics) -> None:
        self._models, self._metrics = models, metrics
        self._versions: dict[str, tuple[int, ...]] = {}

    def opened(self, handle: WorldHandle) -> None:
        """Makes room for the versions of a world; they are read when they are asked for."""
        self._models.add(handle.name, partial(self._found, handle), own=False)
        handle.call(partial(self.changed, handle.name))

    def changed(self, name: str, world: OpenWorld) -> None:
        """Publishes what an act may have changed; it runs in the world's thread."""
        slot: Slot = self._models.slot(name)
        self._versions[name] = tuple(world.state.versions)
        before, version = slot.current, world.state.version
        if version is not None and (before is None or before.version != str(version)):
            self._metrics.used(slot.put(str(version), model_in_use(world)), before)
        if version is None and before is not None:
            slot.clear()
            self._metrics.used(None, before)
        self._metrics.reviewed(name, world)

    def _found(self, handle: WorldHandle) -> dict[str, Callable[[], Any]]:
        """Each version of a world with the function that reads it, in the world's own thread.

        Which versions there are is known without that thread, which may be busy with a lesson for minutes.
        """
        return {
            str(version): partial(handle.call, partial(model_of, version=version))
            for version in self._versions[handle.name]
        }
