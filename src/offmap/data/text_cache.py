"""Vectors of texts on disk, one SQLite file a model: processes may share it, die in it or find it damaged."""

import os
import re
import sqlite3
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from offmap.data.store import user_cache

__all__ = ["CacheWarning", "Embedding", "EmbeddingCache", "cache_file"]

# Each tuned model has a file of its own: without an end the folder would grow with every fit.
_MOST_FILES = 32
# Files of another name in the folder are not ours to remove.
_SUFFIX = ".embeddings"
_KEYS_A_QUERY = 500
_SECONDS_TO_WAIT = 60

_TABLE = "CREATE TABLE IF NOT EXISTS embeddings (key BLOB PRIMARY KEY, cut INTEGER, vector BLOB, checksum INTEGER)"

Answer = TypeVar("Answer")
Row = tuple[bytes, int, bytes, int]


class CacheWarning(UserWarning):
    """A cache of embeddings that was of no use; the work was done without it."""


class Embedding(NamedTuple):
    """The vector of a text, and whether the text was longer than its model reads."""

    vector: NDArray[np.float32]
    cut: bool


def cache_file(setting: bool | str, model: str, identity: str) -> Path | None:
    """Where the vectors of a model lie, or None if they are not to be kept.

    Args:
        setting: False for nowhere, True for the user's cache (or the folder that ``OFFMAP_CACHE`` names), or a folder.
        model: The model's name, for people to recognise the file by.
        identity: Digest of all that the vectors depend on.
    """
    if setting is False:
        return None
    folder = user_cache() / "embeddings" if setting is True else Path(setting).expanduser()
    return folder / f"{re.sub('[^A-Za-z0-9]+', '-', model)[-40:]}.{identity[:24]}{_SUFFIX}"


class EmbeddingCache:
    """Keeps vectors by the digests of their texts. Whatever happens to the file, the worst is a warning.

    Args:
        path: The file, made when it is first needed; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._database: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Embedding]:
        """The embeddings of those ``keys`` that are known."""
        wanted = list(keys)
        return self._attempt(lambda database: _select(database, wanted), otherwise={})

    def keep(self, found: Mapping[bytes, Embedding]) -> None:
        """Adds embeddings, all or none of them."""
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
    _make_room(path)
    database = sqlite3.connect(path, timeout=_SECONDS_TO_WAIT)
    try:
        # A killed process loses nothing by it. What a power cut may do to the file, the checksums tell.
        database.execute("PRAGMA synchronous = OFF")
        database.execute(_TABLE)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _select(database: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, Embedding]:
    found: dict[bytes, Embedding] = {}
    for start in range(0, len(keys), _KEYS_A_QUERY):
        some = keys[start : start + _KEYS_A_QUERY]
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
    except (TypeError, ValueError):  # the damage is in the types
        intact = False
    if not intact:
        raise sqlite3.DatabaseError("a vector is not the one that was written")
    return key, Embedding(np.frombuffer(vector, dtype="<f4"), bool(cut))


def _make_room(path: Path) -> None:
    """Marks ``path`` as used now; if it is new, it takes the place of the file that was not used for longest."""
    with suppress(OSError):
        if path.exists():
            os.utime(path)
            return
        others = sorted(path.parent.glob(f"*{_SUFFIX}"), key=lambda other: other.stat().st_mtime, reverse=True)
        for old in others[_MOST_FILES - 1 :]:
            _remove(old)


def _remove(path: Path) -> bool:
    for name in (path, path.with_name(f"{path.name}-journal")):
        with suppress(OSError):
            name.unlink(missing_ok=True)
    return not path.exists()
