"""Finds data files in ``$OFFMAP_DATA`` or the user's cache, and verifies their checksums."""

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from platformdirs import user_cache_path

__all__ = ["DataCorrupt", "DataNotFound", "File", "Stamp", "cache_folder", "check", "find", "folders", "user_cache"]


class DataNotFound(FileNotFoundError):
    """A data set is not on this machine and cannot be downloaded."""


class DataCorrupt(ValueError):
    """A data file does not have the expected checksum."""


@dataclass(frozen=True)
class File:
    """One file of a data set.

    Args:
        path: Path inside a data folder, with forward slashes.
        sha256: Checksum of the file.
        url: Official address, or None if there is no stable one.
    """

    path: str
    sha256: str
    url: str | None = None


@dataclass(frozen=True)
class Stamp:
    """Path, modification time and size of a file, which show whether it has changed."""

    path: Path
    modified: int
    size: int

    @classmethod
    def of(cls, path: Path) -> "Stamp":
        """Returns the current stamp of ``path``."""
        status = path.stat()
        return cls(path, status.st_mtime_ns, status.st_size)


def user_cache() -> Path:
    """Returns the folder of the user's cache: ``$OFFMAP_CACHE`` if it is set, else the platform's default."""
    moved = os.environ.get("OFFMAP_CACHE")
    return Path(moved).expanduser() if moved else user_cache_path("offmap", appauthor=False)


def cache_folder() -> Path:
    """Returns the folder of downloaded data files in the user's cache."""
    return user_cache() / "data"


def folders() -> tuple[Path, ...]:
    """Returns the folders to search for data files, in order."""
    named = os.environ.get("OFFMAP_DATA")
    return (Path(named).expanduser(), cache_folder()) if named else (cache_folder(),)


def find(file: File) -> Path | None:
    """Returns the path of ``file`` in the first folder that has it, or None. The checksum is not verified."""
    return next((folder / file.path for folder in folders() if (folder / file.path).is_file()), None)


def check(path: Path, sha256: str, source: str = "") -> Stamp:
    """Verifies the checksum of ``path`` and returns its stamp. A file is hashed again only if it has changed.

    Args:
        path: The file.
        sha256: The expected checksum.
        source: Name of the file in the error message; its path by default.

    Raises:
        DataCorrupt: The checksum differs.
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
