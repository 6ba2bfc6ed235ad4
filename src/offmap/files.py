"""Files that are either whole or not there."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary file that takes the place of ``path`` when the block ends well.

    A block that fails, or a process that dies inside it, leaves the old ``path`` as it was. As with ``open``, a link
    stays a link, and a file that is there keeps its permissions.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(Path(folder) / "scores.csv") as fresh:
        ...         _ = fresh.write_text("row,novelty")
        ...     (Path(folder) / "scores.csv").read_text()
        'row,novelty'
    """
    _require_replaceable(Path(path))
    target = Path(path).resolve()
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    fresh = Path(name)
    try:
        yield fresh
        _flush(fresh)
        fresh.chmod(_usual_mode(target))
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)


def _require_replaceable(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} does not exist")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    if path.exists() and not path.is_file():
        raise OSError(f"cannot write {path}: it is a device or a pipe, not a file")


def _flush(path: Path) -> None:
    """Waits until the bytes are on disk, so that a power cut cannot leave the new name on an empty file."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def _usual_mode(target: Path) -> int:
    """The permissions that ``open`` would leave: ``mkstemp`` makes files that only their owner can read."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
