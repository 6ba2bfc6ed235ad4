"""What only the journal in SQLite does: one process at a time, and a file that may be damaged."""

import sqlite3
from pathlib import Path

import pytest

from offmap.store import JournalInUse, JournalUnreadable, SQLiteJournal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


def test_entries_are_never_changed(path: Path) -> None:
    journal = SQLiteJournal(path, create=True)
    journal.append("one", {}, after=0)
    journal.close()
    database = sqlite3.connect(path)
    for statement in ("UPDATE entries SET kind = 'x'", "DELETE FROM entries"):
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            database.execute(statement)
    database.close()


def test_two_at_once_are_refused(path: Path) -> None:
    first = SQLiteJournal(path, create=True)
    with pytest.raises(JournalInUse, match="in use by another process"):
        SQLiteJournal(path)
    first.append("one", {}, after=0)
    first.close()
    second = SQLiteJournal(path, wait=1)
    assert len(list(second.entries())) == 1
    second.close()


def test_wrong_files_are_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no journal"):
        SQLiteJournal(path)
    SQLiteJournal(path, create=True).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(JournalUnreadable, match="newer release"):
        SQLiteJournal(path)
    (tmp_path / "text").write_bytes(b"no database, but long enough to be read as one" * 20)
    with pytest.raises(JournalUnreadable, match="damaged"):
        SQLiteJournal(tmp_path / "text")


def test_a_full_disk_is_one_clear_error_and_the_journal_stays(path: Path) -> None:
    journal = SQLiteJournal(path, create=True)
    journal.append("one", {}, after=0)
    journal._database.execute("PRAGMA max_page_count = 8")
    with pytest.raises(OSError, match=r"full; nothing was changed"):
        journal.append("two", {}, {1: bytes(10**6)}, after=1)
    assert [entry.kind for entry in journal.entries()] == ["one"]
    assert journal.next_row() == 1
    journal.append("three", {}, after=1)
    journal.close()
