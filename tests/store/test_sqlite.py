"""The journal: append-only, whole after a kill, one process at a time."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from offmap.store import JournalInUse, JournalUnreadable, SQLiteJournal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


def test_what_is_appended_is_read_again_in_order(path: Path) -> None:
    journal = SQLiteJournal(path, create=True)
    journal.append("one", {"x": 1.5, "name": "ä"}, {1: b"a", 2: b"\x00"})
    journal.append("two", {"list": [1, None, "s"]})
    journal.close()
    journal = SQLiteJournal(path)
    assert [(entry.number, entry.kind) for entry in journal.entries()] == [(1, "one"), (2, "two")]
    assert journal.rows([2, 1, 9]) == {1: b"a", 2: b"\x00"}
    assert journal.next_row() == 3
    journal.close()


def test_a_refused_entry_leaves_neither_entry_nor_rows(path: Path) -> None:
    journal = SQLiteJournal(path, create=True)
    journal.append("one", {}, {1: b"a"})
    with pytest.raises(JournalUnreadable, match="UNIQUE"):
        journal.append("two", {}, {2: b"b", 1: b"again"})
    with pytest.raises(ValueError, match="JSON"):
        journal.append("three", {"x": float("nan")}, {2: b"b"})
    assert [entry.kind for entry in journal.entries()] == ["one"]
    assert journal.next_row() == 2
    journal.append("four", {}, {2: b"b"})
    journal.close()


def test_entries_are_never_changed(path: Path) -> None:
    journal = SQLiteJournal(path, create=True)
    journal.append("one", {})
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
    first.append("one", {})
    first.close()
    second = SQLiteJournal(path, wait=1)
    assert len(list(second.entries())) == 1
    second.close()


def test_wrong_files_are_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no journal"):
        SQLiteJournal(path)
    SQLiteJournal(path, create=True).close()
    with pytest.raises(FileExistsError, match="exists already"):
        SQLiteJournal(path, create=True)
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
    journal.append("one", {})
    journal._database.execute("PRAGMA max_page_count = 8")
    with pytest.raises(OSError, match=r"full; nothing was changed"):
        journal.append("two", {}, {1: bytes(10**6)})
    assert [entry.kind for entry in journal.entries()] == ["one"]
    assert journal.next_row() == 1
    journal.append("three", {})
    journal.close()


def test_a_killed_writer_loses_nothing_that_was_acknowledged(path: Path) -> None:
    code = (
        "import sys\nfrom offmap.store import SQLiteJournal\njournal = SQLiteJournal(sys.argv[1], create=True)\n"
        "for i in range(1, 10**6):\n journal.append('n', {'i': i}, {i: b'x' * 100})\n print(i, flush=True)\n"
    )
    for seen in (1, 7, 30):
        target = path.with_name(f"{seen}.sqlite")
        process = subprocess.Popen([sys.executable, "-c", code, target], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        acknowledged = [int(process.stdout.readline()) for _ in range(seen)][-1]
        os.kill(process.pid, signal.SIGKILL)
        acknowledged = max([acknowledged, *map(int, process.stdout.read().split())])
        process.stdout.close()
        process.wait()
        journal = SQLiteJournal(target)
        numbers = [entry.content["i"] for entry in journal.entries()]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) in (acknowledged, acknowledged + 1)
        assert journal.next_row() == len(numbers) + 1
        journal.close()
