"""Writing files so that a failure never leaves a half-written one."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary file that replaces ``path`` when the block ends without an error.

    If the block fails or the process is killed, the old ``path`` stays as it was. As with ``open``, a symbolic link
    stays a link and an existing file keeps its permissions.

    Args:
        path: The file to write.

    Raises:
        OSError: ``path`` cannot be replaced: its folder does not exist, or it is not a regular file.

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
        fresh.chmod(_permissions(target))
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
    """Waits until the bytes are on disk, so that a power failure cannot leave an empty file under the new name."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def _permissions(target: Path) -> int:
    """Returns the permissions that ``open`` would give: ``mkstemp`` makes files that only their owner can read."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
