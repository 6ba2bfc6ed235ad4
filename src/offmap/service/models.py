"""The models that a service scores with: versions are loaded, put into use and rolled back without a gap."""

import asyncio
import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from offmap.errors import reason_of
from offmap.service.problems import Problem
from offmap.service.settings import Settings
from offmap.workflow import Estimator, load_model, name_of

_LOG = logging.getLogger("offmap.service")
_SUFFIX = ".safetensors"


@dataclass(frozen=True, eq=False)
class Loaded:
    """One version of a model in memory; a request keeps the one it started with, whatever is put into use meanwhile.

    Args:
        name: The model's name in addresses.
        version: The version's name.
        model: The fitted model.
    """

    name: str
    version: str
    model: Estimator

    @property
    def method(self) -> str:
        """What the command line calls the method."""
        return name_of(self.model)


class Slot:
    """The versions of one model.

    Args:
        name: The model's name.
        find: Gives every version there is now, the oldest first, each with the function that loads it.
        kept: How many versions stay in memory.
        own: Whether its versions are put into use here; those of a world are made by the world.
    """

    def __init__(
        self, name: str, find: Callable[[], Mapping[str, Callable[[], Any]]], kept: int, own: bool = True
    ) -> None:
        self.name, self.find, self.own = name, find, own
        self._kept, self._loading = kept, asyncio.Lock()
        # A world puts its new versions here from its own thread.
        self._changing = threading.Lock()
        self._memory: OrderedDict[str, Loaded] = OrderedDict()
        self.current: Loaded | None = None
        self.before: list[str] = []

    def put(self, version: str, model: Any) -> Loaded:
        """Keeps a version in memory and puts it into use."""
        loaded = self._keep(Loaded(self.name, version, model))
        with self._changing:
            if self.current is not None and self.current.version != version:
                self.before.append(self.current.version)
            self.current = loaded
        return loaded

    def clear(self) -> None:
        """Takes the version in use away, and those in memory, which may have been withdrawn with it."""
        with self._changing:
            self.current = None
            self._memory.clear()

    async def get(self, version: str | None) -> Loaded:
        """A version; by default the one in use. One that is not in memory is loaded in a thread, once."""
        current = self.current
        if current is not None and version in (None, current.version):
            return current
        if version is None:
            raise Problem(409, f"the model {self.name!r} has no version yet; teach its world first")
        async with self._loading:
            found = self._memory.get(version)
            return found or self._keep(Loaded(self.name, version, await asyncio.to_thread(self._load, version)))

    def _load(self, version: str) -> Any:
        known = self.find()
        if version not in known:
            raise Problem(404, f"{self.name!r} has no version {version!r}; versions: {', '.join(known)}")
        try:
            return known[version]()
        except (OSError, ValueError) as error:
            # What it says names files, which are no business of a client.
            _LOG.error("version %s of %s cannot be loaded: %s", version, self.name, reason_of(error))
            raise Problem(500, f"version {version} of {self.name!r} cannot be loaded; the log says why") from error

    def _keep(self, loaded: Loaded) -> Loaded:
        with self._changing:
            self._memory[loaded.version] = loaded
            self._memory.move_to_end(loaded.version)
            while len(self._memory) > self._kept:
                self._memory.popitem(last=False)
        return loaded


class Models:
    """All models by name.

    Args:
        settings: Which models, and where.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._slots: dict[str, Slot] = {}

    def open(self) -> None:
        """Loads the newest version of every model file."""
        for name, path in self._settings.models.items():
            slot = self.add(name, partial(self._files, path))
            versions = slot.find()
            if not versions:
                raise ValueError(f"{path} holds neither a world nor a model file (*{_SUFFIX})")
            newest = list(versions)[-1]
            slot.put(newest, versions[newest]())

    def add(self, name: str, find: Callable[[], Mapping[str, Callable[[], Any]]], own: bool = True) -> Slot:
        """Makes room for a model."""
        self._slots[name] = Slot(name, find, self._settings.limits.versions, own)
        return self._slots[name]

    def _files(self, path: Path) -> dict[str, Callable[[], Any]]:
        """The versions in a folder are its model files, named by them; a single file is version 1."""
        files = {"1": path} if path.is_file() else {each.stem: each for each in in_order(path.glob(f"*{_SUFFIX}"))}
        return {version: partial(load_model, file, self._settings.trusted) for version, file in files.items()}

    def slots(self) -> list[Slot]:
        """Every model."""
        return list(self._slots.values())

    def slot(self, name: str) -> Slot:
        """The model of that name; a ``Problem`` with status 404 if there is none."""
        if name not in self._slots:
            known = ", ".join(map(repr, self._slots)) or "none"
            raise Problem(404, f"there is no model {name!r}; models: {known}")
        return self._slots[name]

    async def get(self, name: str, version: str | None = None) -> Loaded:
        """A version of a model; by default the one in use."""
        return await self.slot(name).get(version)

    async def use(self, name: str, version: str) -> Loaded:
        """Puts another version into use: loaded first, then swapped in one step, so that no request ever waits."""
        slot = self._own(name)
        loaded = await slot.get(version)
        return slot.put(version, loaded.model)

    async def rollback(self, name: str) -> Loaded:
        """Returns to the version that was in use before."""
        slot = self._own(name)
        if not slot.before:
            raise Problem(409, f"no other version of {name!r} was in use before; there is nothing to return to")
        loaded = await slot.get(slot.before[-1])
        slot.put(loaded.version, loaded.model)
        # Both the way there and the way back were noted; neither is a version to return to.
        del slot.before[-2:]
        return loaded

    def _own(self, name: str) -> Slot:
        slot = self.slot(name)
        if not slot.own:
            raise Problem(
                409, f"{name!r} is a world: learn, undo and rollback under /v1/worlds/{name}/ change its version"
            )
        return slot


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Files by name, with the numbers in names in the order of numbers.

    Example:
        >>> [path.stem for path in in_order([Path("v10"), Path("v9")])]
        ['v9', 'v10']
    """
    return sorted(paths, key=lambda path: [part.zfill(20) for part in re.findall(r"\d+|\D+", path.stem)])
