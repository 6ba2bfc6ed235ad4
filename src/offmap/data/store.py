"""Where data files lie: the folder named by ``OFFMAP_DATA``, then the user's cache; checksums guard both."""

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from platformdirs import user_cache_path

__all__ = ["DataCorrupt", "DataNotFound", "File", "Stamp", "cache_folder", "check", "find", "folders", "user_cache"]


class DataNotFound(FileNotFoundError):
    """A data set that is neither on this machine nor to be had from its official address."""


class DataCorrupt(ValueError):
    """A data file whose bytes are not the ones its checksum names."""


@dataclass(frozen=True)
class File:
    """One file of a data set.

    Args:
        path: Place inside a data folder, with forward slashes.
        sha256: Checksum of the file.
        url: Official address, or None where no stable official file exists.
    """

    path: str
    sha256: str
    url: str | None = None


@dataclass(frozen=True)
class Stamp:
    """A file as it was when looked at: a change of time or size makes another stamp."""

    path: Path
    modified: int
    size: int

    @classmethod
    def of(cls, path: Path) -> "Stamp":
        """Looks at ``path`` now."""
        status = path.stat()
        return cls(path, status.st_mtime_ns, status.st_size)


def user_cache() -> Path:
    """Returns the user's cache, or the folder that ``$OFFMAP_CACHE`` names in its place."""
    moved = os.environ.get("OFFMAP_CACHE")
    return Path(moved).expanduser() if moved else user_cache_path("offmap", appauthor=False)


def cache_folder() -> Path:
    """Returns the folder of the user's cache that downloads go to."""
    return user_cache() / "data"


def folders() -> tuple[Path, ...]:
    """Returns the folders that are searched, in order."""
    named = os.environ.get("OFFMAP_DATA")
    return (Path(named).expanduser(), cache_folder()) if named else (cache_folder(),)


def find(file: File) -> Path | None:
    """Returns the first place that holds ``file``, unchecked, or None."""
    return next((folder / file.path for folder in folders() if (folder / file.path).is_file()), None)


def check(path: Path, sha256: str, source: str = "") -> Stamp:
    """Returns the stamp of ``path`` if its bytes have the checksum, else raises; an unchanged file is hashed once.

    Args:
        path: The file.
        sha256: The checksum it must have.
        source: What to call it in the error, where that is not its path.

    Raises:
        DataCorrupt: The bytes are others.
    """
    stamp = Stamp.of(path)
    found = _digest(stamp)
    if found != sha256:
        raise DataCorrupt(f"{source or path} is not the expected file: its sha256 is {found}, expected {sha256}")
    return stamp


@lru_cache(maxsize=512)
def _digest(stamp: Stamp) -> str:
    with stamp.path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
