"""A journal in one SQLite file, in WAL mode."""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

from offmap.store.journal import Entry, JournalInUse, JournalUnreadable

SCHEMA = 1
_TABLES = """
CREATE TABLE entries (number INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, content TEXT NOT NULL);
CREATE TABLE rows (number INTEGER PRIMARY KEY, payload BLOB NOT NULL);
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
CREATE TRIGGER entries_last BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END;
"""
_NUMBERS_PER_QUERY = 500


@final
class SQLiteJournal:
    """Keeps entries and rows in one SQLite file that one process has open at a time.

    A process that is killed loses nothing that ``append`` returned, and leaves no lock behind.

    Args:
        path: The file.
        create: Whether to make it; it must not exist then, and must exist otherwise.
        wait: Seconds to wait for another process to close the journal.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     journal = SQLiteJournal(Path(folder) / "journal.sqlite", create=True)
        ...     _ = journal.append("named", {"group": 7, "label": "card swallowed"})
        ...     print(list(journal.entries()))
        ...     journal.close()
        [Entry(number=1, kind='named', content={'group': 7, 'label': 'card swallowed'})]
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False, wait: float = 0.0) -> None:
        self._path = Path(path)
        if create and self._path.exists():
            raise FileExistsError(f"{self._path} exists already; open it, or choose another folder")
        if not create and not self._path.is_file():
            raise FileNotFoundError(f"there is no journal {self._path}")
        self._database = sqlite3.connect(self._path, timeout=wait, isolation_level=None, check_same_thread=False)
        try:
            with self._translated():
                self._open(create)
        except BaseException:
            self._database.close()
            raise

    def _open(self, create: bool) -> None:
        run = self._database.execute
        # Exclusive: the lock is taken by the first statement and held until the connection or the process ends.
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        run("BEGIN IMMEDIATE")
        if create:
            for statement in _TABLES.strip().split("\n"):
                run(statement)
            run(f"PRAGMA user_version = {SCHEMA}")
        found = run("PRAGMA user_version").fetchone()[0]
        run("COMMIT")
        if found > SCHEMA:
            raise JournalUnreadable(
                f"{self._path} was written by a newer release (schema {found}, this one reads up to {SCHEMA}); "
                "update offmap"
            )
        if found < 1:
            raise JournalUnreadable(f"{self._path} is not a journal")

    def append(self, kind: str, content: Mapping[str, Any], rows: Mapping[int, bytes] | None = None) -> Entry:
        """Writes one entry, and the rows that came with it, all or nothing; they are on disk when it returns."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        at = datetime.now(UTC).isoformat(timespec="seconds")
        with self._translated():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._database.executemany("INSERT INTO rows VALUES (?, ?)", (rows or {}).items())
                number = self._database.execute(
                    "INSERT INTO entries (at, kind, content) VALUES (?, ?, ?)", (at, kind, text)
                ).lastrowid
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise
        assert number is not None
        return Entry(number, kind, json.loads(text))

    def entries(self) -> Iterator[Entry]:
        """All entries, in order."""
        with self._translated():
            found = self._database.execute("SELECT number, kind, content FROM entries ORDER BY number").fetchall()
        for number, kind, content in found:
            yield Entry(number, kind, json.loads(content))

    def rows(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """The rows with these numbers."""
        wanted = list(numbers)
        found: dict[int, bytes] = {}
        with self._translated():
            for start in range(0, len(wanted), _NUMBERS_PER_QUERY):
                some = wanted[start : start + _NUMBERS_PER_QUERY]
                marks = ",".join("?" * len(some))
                query = f"SELECT number, payload FROM rows WHERE number IN ({marks})"
                found.update(self._database.execute(query, some).fetchall())
        return found

    def next_row(self) -> int:
        """The smallest number that is above those of all rows."""
        with self._translated():
            return int(self._database.execute("SELECT coalesce(max(number), 0) + 1 FROM rows").fetchone()[0])

    def close(self) -> None:
        """Lets go of the file; closing twice does nothing."""
        self._database.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turns SQLite's errors into ones that name the file and the remedy."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise JournalInUse(
                    f"{self._path} is in use by another process; wait until it ends, or pass wait=seconds"
                ) from None
            raise OSError(f"cannot use {self._path}: {error}; nothing was changed") from error
        except sqlite3.ProgrammingError as error:
            raise ValueError(f"{self._path} was closed: open it again") from error
        except sqlite3.DatabaseError as error:
            raise JournalUnreadable(f"{self._path} is damaged: {error}") from error
