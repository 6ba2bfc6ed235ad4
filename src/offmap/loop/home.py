"""Where a world is kept: a folder with a journal in SQLite and one file per version, or a PostgreSQL database."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offmap import catalog
from offmap.loop.state import Version
from offmap.openset.incremental import IncrementalClassifier
from offmap.store import Files, FolderFiles, Journal, SQLiteJournal

JOURNAL = "journal.sqlite"
# Seconds to wait for others: a folder is taken until its process ends, a database only for the time of an act.
_WAIT_FOR_TURN = 60.0


@dataclass(frozen=True)
class Home:
    """The journal and the model files of a world.

    Args:
        where: The folder or the database, for messages.
        journal: The open journal.
        files: Keeps one file per version of the model.
    """

    where: str
    journal: Journal
    files: Files

    @contextmanager
    def new_model(self, model: IncrementalClassifier, version: int, after: int) -> Iterator[str]:
        """Writes a version of the model for a block that records it, and yields the digest of its file.

        It is written before the journal says that it exists, and removed if the block fails to say so. A process that
        is killed in between leaves at most a file that the next version of that number replaces.

        Args:
            model: The model.
            version: Its number.
            after: Number of the last entry of the journal; the block appends the next one.
        """
        try:
            yield self._write_model(model, version)
        except BaseException:
            # If the journal cannot be read, the file stays: the journal may speak of it.
            with suppress(OSError, ValueError):
                if next(self.journal.entries(after), None) is None:
                    self.files.discard(_file(version))
            raise

    def _write_model(self, model: IncrementalClassifier, version: int) -> str:
        try:
            with self.files.writing(_file(version)) as path:
                model.save(path)
                return _digest(path)
        except OSError as error:
            why = f"version {version} of the model cannot be written to {self.where}: {error.strerror or error}"
            raise OSError(error.errno, f"{why}; nothing was changed") from error

    def read_model(self, version: Version) -> Any:
        """Reads a version of the model, if its file is the one that the journal speaks of."""
        try:
            with self.files.reading(_file(version.number)) as path:
                if _digest(path) != version.digest:
                    raise ValueError(f"{path} is not the file that was written as version {version.number}; restore it")
                return catalog.load(path)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"version {version.number} of the model is missing: {error}") from None


def make_home(path: str | os.PathLike[str], store: str | None) -> Home:
    """Makes the journal of a new world; a folder or a name that has one already is refused.

    Args:
        path: The folder, or the name in the database.
        store: URL of a PostgreSQL database; None for a folder.
    """
    if store is not None:
        return _in_database(os.fspath(path), store, create=True)
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return _in_folder(folder, SQLiteJournal(folder / JOURNAL, create=True))
    except FileExistsError:
        raise FileExistsError(f"{folder} holds a world already; open it with OpenWorld.open") from None


def open_home(path: str | os.PathLike[str], store: str | None, wait: float | None) -> Home:
    """Opens the journal of a world.

    Args:
        path: The folder, or the name in the database.
        store: URL of a PostgreSQL database; None for a folder.
        wait: Seconds to wait for other processes; by default none for a folder, and a minute for a database.
    """
    if store is not None:
        return _in_database(os.fspath(path), store, wait=_WAIT_FOR_TURN if wait is None else wait)
    folder = Path(path)
    if not (folder / JOURNAL).is_file():
        raise FileNotFoundError(f"{folder} holds no world; make one with OpenWorld.create")
    return _in_folder(folder, SQLiteJournal(folder / JOURNAL, wait=wait or 0.0))


def _in_folder(folder: Path, journal: SQLiteJournal) -> Home:
    return Home(str(folder), journal, FolderFiles(folder / "models"))


def _in_database(name: str, store: str, *, create: bool = False, wait: float = _WAIT_FOR_TURN) -> Home:
    try:
        from offmap.store.postgres import PostgresJournal
        from offmap.store.postgres_files import PostgresFiles
    except ImportError as error:
        raise ImportError(
            f"a store in PostgreSQL needs {error.name}: pip install '.[service]' in Offmap's folder"
        ) from error
    journal = PostgresJournal(store, name, create=create, wait=wait)
    return Home(str(journal), journal, PostgresFiles(journal))


def _file(version: int) -> str:
    return f"{version:04d}.safetensors"


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
