"""A journal in one SQLite file, in WAL mode."""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

from offmap.errors import reason_of
from offmap.store.journal import Entry, JournalInUse, JournalUnreadable, encoded, require_seen

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
        create: Whether to make it; it must have no entries then, and must exist otherwise.
        wait: Seconds to wait for another process to close the journal.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     journal = SQLiteJournal(Path(folder) / "journal.sqlite", create=True)
        ...     _ = journal.append("named", {"group": 7, "label": "card swallowed"}, after=0)
        ...     print(list(journal.entries()))
        ...     journal.close()
        [Entry(number=1, kind='named', content={'group': 7, 'label': 'card swallowed'})]
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False, wait: float = 0.0) -> None:
        self._path = Path(path)
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
        found = run("PRAGMA user_version").fetchone()[0]
        # A process that was killed while it made the journal leaves one without entries: it can be made again.
        if create and not found and not run("SELECT 1 FROM sqlite_master").fetchone():
            for statement in _TABLES.strip().split("\n"):
                run(statement)
            run(f"PRAGMA user_version = {SCHEMA}")
            found = SCHEMA
        run("COMMIT")
        self._require_readable(found)
        if create and self._last():
            raise FileExistsError(f"{self._path} exists already; open it, or choose another folder")

    def _require_readable(self, schema: int) -> None:
        if schema > SCHEMA:
            raise JournalUnreadable(
                f"{self._path} was written by a newer release (schema {schema}, this one reads up to {SCHEMA}); "
                "update offmap"
            )
        if schema < 1:
            raise JournalUnreadable(f"{self._path} is not a journal")

    def turn(self) -> AbstractContextManager[None]:
        """Does nothing: no other process can append while this one has the file open."""
        return nullcontext()

    def append(
        self, kind: str, content: Mapping[str, Any], rows: Mapping[int, bytes] | None = None, *, after: int
    ) -> Entry:
        """Writes one entry, and the rows that came with it, all or nothing; they are on disk when it returns."""
        text, at = encoded(content), datetime.now(UTC).isoformat(timespec="seconds")
        with self._translated():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                require_seen(self._path, self._last(), after)
                self._database.executemany("INSERT INTO rows VALUES (?, ?)", (rows or {}).items())
                self._database.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (after + 1, at, kind, text))
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise
        return Entry(after + 1, kind, json.loads(text), at)

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """The entries with a number above ``after``, in order."""
        query = "SELECT number, kind, content, at FROM entries WHERE number > ? ORDER BY number"
        with self._translated():
            found = self._database.execute(query, (after,)).fetchall()
        for number, kind, content, at in found:
            yield Entry(number, kind, self._decoded(number, content), at)

    def _decoded(self, number: int, content: str) -> Any:
        try:
            return json.loads(content)
        except (TypeError, ValueError) as error:
            raise JournalUnreadable(f"{self._path} is damaged: entry {number} is not JSON") from error

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

    def _last(self) -> int:
        return int(self._database.execute("SELECT coalesce(max(number), 0) FROM entries").fetchone()[0])

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
            if "decode" in str(error):
                raise JournalUnreadable(f"{self._path} is damaged: {reason_of(error)}") from error
            raise OSError(f"cannot use {self._path}: {reason_of(error)}; nothing was changed") from error
        except sqlite3.ProgrammingError as error:
            raise ValueError(f"{self._path} was closed: open it again") from error
        except sqlite3.DatabaseError as error:
            raise JournalUnreadable(f"{self._path} is damaged: {reason_of(error)}") from error
