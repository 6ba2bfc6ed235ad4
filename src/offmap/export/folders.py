"""A folder that appears whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def new_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary folder that becomes ``path`` when the block ends without an error.

    Raises:
        OSError: There is something at ``path``, or no folder to put it in.

    Example:
        >>> with tempfile.TemporaryDirectory() as place:
        ...     with new_folder(Path(place) / "exported") as fresh:
        ...         _ = (fresh / "model.onnx").write_bytes(b"")
        ...     os.listdir(Path(place) / "exported")
        ['model.onnx']
    """
    require_new(Path(path))
    target = Path(path).absolute()
    with tempfile.TemporaryDirectory(prefix=f".{target.name[:100]}.part-", dir=target.parent) as place:
        fresh = Path(place) / "folder"
        fresh.mkdir()
        yield fresh
        require_new(target)
        if target.is_dir():
            target.rmdir()
        shutil.move(fresh, target)


def require_new(path: Path) -> None:
    """Refuses a path that something is at, but for an empty folder, or whose parent does not exist."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"cannot write {path}: it exists and is not an empty folder; name a new one")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} does not exist")
