"""Files that are either whole or not there."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary file that takes the place of ``path`` when the block ends well.

    A block that fails, or a process that dies inside it, leaves the old ``path`` as it was.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(Path(folder) / "scores.csv") as fresh:
        ...         _ = fresh.write_text("row,novelty")
        ...     (Path(folder) / "scores.csv").read_text()
        'row,novelty'
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {target}: the folder {target.parent} does not exist")
    if target.is_dir():
        raise IsADirectoryError(f"cannot write {target}: it is a folder")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    fresh = Path(name)
    try:
        yield fresh
        _flush(fresh)
        fresh.chmod(_usual_mode())
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Waits until the bytes are on disk, so that a power cut cannot leave the new name on an empty file."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def _usual_mode() -> int:
    """The permissions that ``open`` would give: ``mkstemp`` makes files that only their owner can read."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
