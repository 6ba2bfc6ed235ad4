"""Tells the rest of the service what became of a world: its version in use, and its groups."""

from collections.abc import Callable
from functools import partial
from typing import Any

from offmap.loop import OpenWorld
from offmap.loop.folder import read_model
from offmap.service.metrics import Metrics
from offmap.service.models import Models, Slot


class Publisher:
    """Puts each new version of a world into use for scoring, and counts its groups.

    Args:
        models: The models.
        metrics: The counts.
    """

    def __init__(self, models: Models, metrics: Metrics) -> None:
        self._models, self._metrics = models, metrics

    def opened(self, name: str, world: OpenWorld) -> None:
        """Makes room for the versions of a world; they are read from its files when they are asked for."""
        self._models.add(name, partial(_versions, world), own=False)
        self.changed(name, world)

    def changed(self, name: str, world: OpenWorld) -> None:
        """Publishes what an act may have changed; it runs in the world's thread."""
        slot: Slot = self._models.slot(name)
        before, version = slot.current, world.state.version
        if version is not None and (before is None or before.version != str(version)):
            self._metrics.used(slot.put(str(version), world.classifier), before)
        self._metrics.reviewed(name, world)


def _versions(world: OpenWorld) -> dict[str, Callable[[], Any]]:
    known = dict(world.state.versions)
    return {str(number): partial(read_model, world._ledger.folder, version) for number, version in known.items()}
