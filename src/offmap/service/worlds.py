"""The worlds that a service holds open: one thread per world, so that acts on it never overlap."""

import asyncio
import logging
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from offmap.errors import reason_of
from offmap.loop import OpenWorld, StaleActError
from offmap.loop.access import require_unchanged
from offmap.service.problems import Problem, busy
from offmap.service.settings import Settings

T = TypeVar("T")
_LOG = logging.getLogger("offmap.service")


class StaleAct(Problem):
    """An act on what has changed since its author looked; nothing was done.

    Args:
        changes: What happened in between, one sentence each.
        revision: The revision now.
    """

    def __init__(self, changes: tuple[str, ...], revision: int) -> None:
        self.changes, self.revision = changes, revision
        message = f"nothing was done, since this changed meanwhile: {'; '.join(changes)}"
        super().__init__(409, message, changes=list(changes), revision=revision)


class WorldHandle:
    """One open world. Functions are run one at a time in a thread of its own, in the order in which they came.

    Args:
        name: Its name in addresses.
        world: The world.
        queue: Most functions that may wait.
        audience: Is told in the thread after each function, to publish a new version and the counts.
    """

    def __init__(self, name: str, world: OpenWorld, queue: int, audience: "Audience") -> None:
        self.name = name
        self._world, self._queue, self._audience = world, queue, audience
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"world-{name}")
        self._waiting = 0

    async def read(self, function: Callable[[OpenWorld], T]) -> T:
        """Runs a function that decides nothing, such as ``OpenWorld.groups``."""
        return await self._run(function)

    async def act(
        self, function: Callable[[OpenWorld], T], *, revision: int | None = None, groups: Collection[int] = ()
    ) -> T:
        """Runs a function that acts; what it recorded is on disk when this returns.

        Args:
            function: The act.
            revision: What ``OpenWorld.revision`` said when its author looked; None if the author does not mind changes.
            groups: The groups that the act is about. It is stale if one of them was changed since ``revision``, or
                the model; without groups, after any decision since.

        Raises:
            StaleAct: It is stale; nothing was done.
        """

        def checked(world: OpenWorld) -> T:
            if revision is not None:
                require_unchanged(world, revision, groups)
            return function(world)

        return await self._run(checked)

    def call(self, function: Callable[[OpenWorld], T]) -> T:
        """Runs a function for another thread, which waits for it."""
        return self._thread.submit(function, self._world).result()

    async def _run(self, function: Callable[[OpenWorld], T]) -> T:
        if self._waiting >= self._queue:
            raise busy(f"{self._waiting} requests wait for the world {self.name!r}; try again later")

        def run() -> T:
            try:
                return function(self._world)
            finally:
                self._audience.changed(self.name, self._world)

        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, run)
        except StaleActError as stale:
            raise StaleAct(stale.acts, stale.revision) from None
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Finishes what was accepted and lets go of the world."""
        self._thread.shutdown(wait=True)
        self._world.close()


class Audience(Protocol):
    """Who is told of worlds."""

    def opened(self, handle: WorldHandle) -> None:
        """A world was opened."""

    def changed(self, name: str, world: OpenWorld) -> None:
        """A function ran on a world, and may have changed it; this is called in the world's thread."""


class Worlds:
    """The open worlds by name.

    Args:
        settings: Which worlds, and where.
        audience: Is told of each world that was opened, and after each function that ran on one.
    """

    def __init__(self, settings: Settings, audience: Audience) -> None:
        self._settings, self._audience = settings, audience
        self._handles: dict[str, WorldHandle] = {}

    def open(self) -> None:
        """Opens every world."""
        for name, place in self._settings.worlds.items():
            world = OpenWorld.open(place, store=self._settings.store)
            handle = WorldHandle(name, world, self._settings.limits.queue, self._audience)
            self._handles[name] = handle
            self._audience.opened(handle)

    def names(self) -> list[str]:
        """Names of the worlds, in the order in which they were given."""
        return list(self._handles)

    def get(self, name: str) -> WorldHandle:
        """The world of that name; a ``Problem`` with status 404 if there is none."""
        if name not in self._handles:
            known = ", ".join(map(repr, self._handles)) or "none"
            raise Problem(404, f"there is no world {name!r}; worlds: {known}")
        return self._handles[name]

    async def follow(self, seconds: float) -> None:
        """Takes in, again and again, what other instances do to worlds in a shared database."""
        while True:
            await asyncio.sleep(seconds)
            for handle in self._handles.values():
                try:
                    await handle.read(OpenWorld.refresh)
                except (OSError, ValueError, Problem) as error:  # a database that is away may come back
                    _LOG.warning("the world %s cannot be read: %s", handle.name, reason_of(error))

    def close(self) -> None:
        """Finishes what was accepted and lets go of every world."""
        for handle in self._handles.values():
            handle.close()
