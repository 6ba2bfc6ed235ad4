"""Both kinds of journal, to be tested alike."""

import uuid
from dataclasses import dataclass
from pathlib import Path

from offmap.store import Files, FolderFiles, Journal, SQLiteJournal


@dataclass(frozen=True)
class Place:
    """Where one journal is kept: a file, or a name in a database.

    Args:
        folder: A folder for files.
        store: URL of a database; None for SQLite.
        name: Its name.
    """

    folder: Path
    store: str | None
    name: str

    @classmethod
    def new(cls, folder: Path, store: str | None) -> "Place":
        return cls(folder, store, f"world-{uuid.uuid4().hex}")

    def open(self, *, create: bool = False, wait: float = 5.0) -> Journal:
        if self.store is None:
            return SQLiteJournal(self.folder / f"{self.name}.sqlite", create=create, wait=wait)
        from offmap.store.postgres import PostgresJournal

        return PostgresJournal(self.store, self.name, create=create, wait=wait)

    def files(self, journal: Journal) -> Files:
        if self.store is None:
            return FolderFiles(self.folder / self.name)
        from offmap.store.postgres import PostgresJournal
        from offmap.store.postgres_files import PostgresFiles

        assert isinstance(journal, PostgresJournal)
        return PostgresFiles(journal)
