"""Files of a world in its folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final


@final
class FolderFiles:
    """Keeps files in a folder; the writer is trusted to replace a file in one piece, as ``save`` of models does.

    Args:
        folder: The folder; it is made when the first file is written.

    Example:
        >>> import tempfile
        >>> files = FolderFiles(tempfile.mkdtemp())
        >>> with files.writing("note") as path:
        ...     _ = path.write_text("kept")
        >>> with files.reading("note") as path:
        ...     path.read_text()
        'kept'
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """The path of the file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        yield self._folder / name

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        """The path of the file, which must exist."""
        if not (self._folder / name).is_file():
            raise FileNotFoundError(f"there is no {self._folder / name}")
        yield self._folder / name

    def discard(self, name: str) -> None:
        """Removes the file, if there is one."""
        (self._folder / name).unlink(missing_ok=True)
