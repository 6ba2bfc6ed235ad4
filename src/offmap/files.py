"""Writing files so that a failure never leaves a half-written one."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks, and abandoned files stay there
    fcntl = None  # type: ignore[assignment]

_MARK = ".part-"


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary file that replaces ``path`` when the block ends without an error.

    If the block fails or the process is killed, the old ``path`` stays as it was. What a killed process left is removed
    when the same ``path`` is written again. As with ``open``, a symbolic link stays a link and an existing file keeps
    its permissions.

    Args:
        path: The file to write.

    Raises:
        OSError: ``path`` cannot be replaced: its folder does not exist, or it is not a regular file.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(Path(folder) / "scores.csv") as fresh:
        ...         _ = fresh.write_text("row,novelty")
        ...     (Path(folder) / "scores.csv").read_text()
        'row,novelty'
    """
    _require_replaceable(Path(path))
    target = Path(path).resolve()
    remove_abandoned(target)
    fresh, handle = _locked_beside(target)
    try:
        if target.exists():
            os.chmod(fresh, stat.S_IMODE(target.stat().st_mode))
        yield fresh
        _flush(fresh)
        fresh.replace(target)
    finally:
        os.close(handle)
        fresh.unlink(missing_ok=True)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Locks a file for the block, and makes it if need be; yields False if another process has locked it.

    The lock ends with the process, however that ends.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with locked(Path(folder) / "journal") as free:
        ...         free
        True
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        free = True
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                free = False
        yield free
    finally:
        os.close(handle)


def remove_abandoned(target: Path) -> None:
    """Removes the temporary files that killed processes left beside ``target``; those of running ones are locked."""
    start = f".{target.name[:100]}{_MARK}"
    for name in [name for name in _names(target.parent) if name.startswith(start)]:
        with suppress(OSError):
            _remove_unless_locked(target.with_name(name))


def _names(folder: Path) -> list[str]:
    """The names in a folder; none if it may be written but not listed."""
    with suppress(OSError):
        return os.listdir(folder)
    return []


def _require_replaceable(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} does not exist")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    if path.exists() and not path.is_file():
        raise OSError(f"cannot write {path}: it is a device or a pipe, not a file")


def _locked_beside(target: Path) -> tuple[Path, int]:
    """A new file in the same folder, and a handle that keeps it locked while this process lives.

    It is made with the mode that ``open`` uses, so that the umask applies without being read: reading it means changing
    it, for all threads.
    """
    while True:
        # The first 100 characters: a name has 255 bytes at most.
        fresh = target.with_name(f".{target.name[:100]}{_MARK}{secrets.token_hex(8)}{target.suffix[:20]}")
        handle = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        # Another process may have taken the file for abandoned before it was locked.
        if fresh.exists():
            return fresh, handle
        os.close(handle)


def _remove_unless_locked(path: Path) -> None:
    if fcntl is None:  # pragma: no cover
        return
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Removed while it is locked: who has just made it must not find it here and keep it.
        path.unlink()
    finally:
        os.close(handle)


def _flush(path: Path) -> None:
    """Waits until the bytes are on disk, so that a power failure cannot leave an empty file under the new name."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())
