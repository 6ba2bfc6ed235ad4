"""The worlds that a service holds open: one thread per world, so that acts on it never overlap."""

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from offmap.loop import OpenWorld
from offmap.service.problems import Problem, busy
from offmap.service.settings import Settings

T = TypeVar("T")
# Rows of the known classes that others are compared with.
_COMPARED = 2_000
# Entries that change nothing that a person decided on: the stream goes on while people review.
_HARMLESS = ("observed", "audited", "grouped")


class Audience(Protocol):
    """Who is told of worlds."""

    def opened(self, name: str, world: OpenWorld) -> None:
        """A world was opened."""

    def changed(self, name: str, world: OpenWorld) -> None:
        """A function ran on a world, and may have changed it; this is called in the world's thread."""


class StaleAct(Problem):
    """An act on what has changed since its author looked; nothing was done.

    Args:
        changes: What happened in between, one sentence each.
        revision: The revision now.
    """

    def __init__(self, changes: list[str], revision: int) -> None:
        self.changes, self.revision = changes, revision
        super().__init__(
            409,
            f"nothing was done, since this changed meanwhile: {'; '.join(changes)}",
            changes=changes,
            revision=revision,
        )


class WorldHandle:
    """One open world. Functions are run one at a time in a thread of its own, in the order in which they came.

    Args:
        name: Its name in addresses.
        world: The world.
        queue: Most functions that may wait.
        audience: Is told in the thread after each function, to publish a new version and the counts.
    """

    def __init__(self, name: str, world: OpenWorld, queue: int, audience: Audience) -> None:
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
            revision: What ``revision_of`` said when its author looked; None if the author does not mind changes.
            groups: The groups that the act is about. It is stale if one of them was changed since ``revision``, or
                the model; without groups, after any decision since.

        Raises:
            StaleAct: It is stale; nothing was done.
        """

        def checked(world: OpenWorld) -> T:
            if revision is not None and (changes := changes_since(world, revision, groups)):
                raise StaleAct(changes, revision_of(world))
            return function(world)

        return await self._run(checked)

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
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Finishes what was accepted and lets go of the world."""
        self._thread.shutdown(wait=True)
        self._world.close()


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
        for name, folder in self._settings.worlds.items():
            world = OpenWorld.open(folder, **self._settings.opening())
            self._handles[name] = WorldHandle(name, world, self._settings.limits.queue, self._audience)
            self._audience.opened(name, world)

    def names(self) -> list[str]:
        """Names of the worlds, in the order in which they were given."""
        return list(self._handles)

    def get(self, name: str) -> WorldHandle:
        """The world of that name; a ``Problem`` with status 404 if there is none."""
        if name not in self._handles:
            known = ", ".join(map(repr, self._handles)) or "none"
            raise Problem(404, f"there is no world {name!r}; worlds: {known}")
        return self._handles[name]

    def close(self) -> None:
        """Finishes what was accepted and lets go of every world."""
        for handle in self._handles.values():
            handle.close()


def revision_of(world: OpenWorld) -> int:
    """Number of the last entry in the world's journal."""
    return max((entry.number for entry in world._ledger.journal.entries()), default=0)


def changes_since(world: OpenWorld, revision: int, groups: Collection[int]) -> list[str]:
    """What was decided since ``revision``, of these groups or of the whole world; of everything if there are none."""
    entries = [entry for entry in world._ledger.journal.entries() if entry.number > revision]
    return [
        sentence(entry.kind, entry.content)
        for entry in entries
        if entry.kind not in _HARMLESS and (not groups or _touches(entry.content, groups))
    ]


def sentence(kind: str, content: Any) -> str:
    """One entry of the journal in words.

    Example:
        >>> sentence("named", {"group": 7, "label": "card swallowed"})
        "group 7 was named 'card swallowed'"
    """
    if kind in ("undone", "redone"):
        return f"a decision was {kind}"
    if "version" in content:
        return f"version {content['version']} was {kind}"
    what = f"group {content['group']}" if "group" in content and "row" not in content else "a row"
    more = {"named": "label", "merged": "other"}.get(kind)
    after = "" if more is None else f" {content[more]!r}" if kind == "named" else f" with group {content[more]}"
    return f"{what} was {kind}{after}"


def _touches(content: Any, groups: Collection[int]) -> bool:
    """Whether an entry is about one of the groups, or about no single group."""
    named = {content[name] for name in ("group", "other") if name in content}
    return not named or not named.isdisjoint(groups)


def known_rows(world: OpenWorld) -> Any:
    """Rows that taught the known classes, to compare others with."""
    return world._ledger.memory.rows(list(world.state.taught)[:_COMPARED])
