"""A cache of text embeddings on disk, one SQLite file per model, safe for concurrent and killed processes."""

import os
import re
import sqlite3
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from offmap.data.store import user_cache

__all__ = ["CacheWarning", "Embedding", "EmbeddingCache", "cache_file", "cache_place", "make_room"]

# Each tuned model has its own file: without a limit the folder would grow with every fit.
_MOST_FILES = 32
_SUFFIX = ".embeddings"
_KEYS_PER_QUERY = 500
_SECONDS_TO_WAIT = 60

_TABLE = "CREATE TABLE IF NOT EXISTS embeddings (key BLOB PRIMARY KEY, cut INTEGER, vector BLOB, checksum INTEGER)"

Answer = TypeVar("Answer")
Row = tuple[bytes, int, bytes, int]


class CacheWarning(UserWarning):
    """The cache of embeddings could not be used; texts were encoded without it."""


class Embedding(NamedTuple):
    """The vector of a text, and whether the text was longer than the model reads."""

    vector: NDArray[np.float32]
    cut: bool


def cache_file(setting: bool | str, model: str, identity: str) -> Path | None:
    """Returns the cache file of a model, or None if nothing is cached.

    Args:
        setting: False for no cache, True for the user's cache folder (``OFFMAP_CACHE`` moves it), or a folder.
        model: The model's name, which makes the file recognisable.
        identity: Digest of everything that the vectors depend on.
    """
    folder = cache_place(setting)
    return folder and folder / f"{re.sub('[^A-Za-z0-9]+', '-', model)[-40:]}.{identity[:24]}{_SUFFIX}"


def cache_place(setting: bool | str) -> Path | None:
    """Returns the folder of cached files, or None if nothing is cached."""
    if setting is False:
        return None
    return user_cache() / "embeddings" if setting is True else Path(setting).expanduser()


@final
class EmbeddingCache:
    """Stores vectors under the digests of their texts; problems with the file cause a warning, never an error.

    Args:
        path: The file, created when first needed; None stores nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._database: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Embedding]:
        """Returns the embeddings of those ``keys`` that are stored."""
        wanted = list(keys)
        return self._attempt(lambda database: _select(database, wanted), otherwise={})

    def keep(self, found: Mapping[bytes, Embedding]) -> None:
        """Stores embeddings, all or none of them."""
        self._attempt(lambda database: _insert(database, found), otherwise=None)

    def _attempt(self, work: Callable[[sqlite3.Connection], Answer], otherwise: Answer) -> Answer:
        if self._path is None:
            return otherwise
        try:
            self._database = self._database or _opened(self._path)
            return work(self._database)
        except (sqlite3.OperationalError, OSError) as error:
            self._give_up(f"the cache {self._path} cannot be used: {error}")
        except sqlite3.DatabaseError as error:
            self._start_anew(f"the cache {self._path} is damaged and was removed: {error}")
        return otherwise

    def _give_up(self, message: str) -> None:
        self._close()
        self._path = None
        warnings.warn(message, CacheWarning, stacklevel=7)

    def _start_anew(self, message: str) -> None:
        self._close()
        if self._path is not None and not _remove(self._path):
            self._path = None
        warnings.warn(message, CacheWarning, stacklevel=7)

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
        self._database = None


def _opened(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    make_room(path, _MOST_FILES)
    database = sqlite3.connect(path, timeout=_SECONDS_TO_WAIT)
    try:
        # Faster, and safe if the process is killed. Damage by a power cut is found by the checksums.
        database.execute("PRAGMA synchronous = OFF")
        database.execute(_TABLE)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _select(database: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, Embedding]:
    found: dict[bytes, Embedding] = {}
    for start in range(0, len(keys), _KEYS_PER_QUERY):
        some = keys[start : start + _KEYS_PER_QUERY]
        marks = ",".join("?" * len(some))
        rows = database.execute(f"SELECT key, cut, vector, checksum FROM embeddings WHERE key IN ({marks})", some)
        found.update(map(_unpack, rows.fetchall()))
    return found


def _insert(database: sqlite3.Connection, found: Mapping[bytes, Embedding]) -> None:
    rows = [_pack(key, embedding) for key, embedding in found.items()]
    with database:
        database.executemany("INSERT OR IGNORE INTO embeddings VALUES (?, ?, ?, ?)", rows)


def _pack(key: bytes, embedding: Embedding) -> Row:
    cut, vector = int(embedding.cut), embedding.vector.astype("<f4").tobytes()
    return key, cut, vector, zlib.crc32(key + bytes([cut]) + vector)


def _unpack(row: Row) -> tuple[bytes, Embedding]:
    key, cut, vector, checksum = row
    try:
        intact = zlib.crc32(key + bytes([cut]) + vector) == checksum
    except (TypeError, ValueError):  # damaged values can have other types
        intact = False
    if not intact:
        raise sqlite3.DatabaseError("a stored vector does not match its checksum")
    return key, Embedding(np.frombuffer(vector, dtype="<f4"), bool(cut))


def make_room(path: Path, most: int) -> None:
    """Marks ``path`` as used now; if it is new, removes the least recently used files of its suffix above ``most``."""
    with suppress(OSError):
        if path.exists():
            os.utime(path)
            return
        others = sorted(path.parent.glob(f"*{path.suffix}"), key=lambda other: other.stat().st_mtime, reverse=True)
        for old in others[most - 1 :]:
            _remove(old)


def _remove(path: Path) -> bool:
    for name in (path, path.with_name(f"{path.name}-journal")):
        with suppress(OSError):
            name.unlink(missing_ok=True)
    return not path.exists()
