"""What every journal does, in SQLite and in PostgreSQL: append-only, whole after a kill, one writer at a time."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from offmap.store import JournalMoved, JournalUnreadable
from tests.store.journals import Place


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    store = None if request.param == "sqlite" else request.getfixturevalue("postgres")
    return Place.new(tmp_path, store)


def test_what_is_appended_is_read_again_in_order(place: Place) -> None:
    journal = place.open(create=True)
    journal.append("one", {"x": 1.5, "name": "ä\0\n"}, {1: b"a", 2: b"\x00"}, after=0)
    journal.append("two", {"list": [1, None, "s"], "a": {"b": 2}}, after=1)
    journal.close()
    journal = place.open()
    found = list(journal.entries())
    assert [(entry.number, entry.kind) for entry in found] == [(1, "one"), (2, "two")]
    assert [list(entry.content.items()) for entry in found] == [
        [("x", 1.5), ("name", "ä\0\n")],
        [("list", [1, None, "s"]), ("a", {"b": 2})],
    ]
    assert found[0].at.endswith("+00:00")
    assert [entry.kind for entry in journal.entries(after=1)] == ["two"]
    assert journal.rows([2, 1, 9]) == {1: b"a", 2: b"\x00"}
    assert journal.next_row() == 3
    journal.close()


def test_a_refused_entry_leaves_neither_entry_nor_rows(place: Place) -> None:
    journal = place.open(create=True)
    journal.append("one", {}, {1: b"a"}, after=0)
    with pytest.raises(JournalUnreadable, match="UNIQUE"):
        journal.append("two", {}, {2: b"b", 1: b"again"}, after=1)
    with pytest.raises(ValueError, match="JSON"):
        journal.append("three", {"x": float("nan")}, {2: b"b"}, after=1)
    with pytest.raises(JournalMoved, match="has 1 entries, of which 0 were seen; nothing was changed"):
        journal.append("four", {}, {2: b"b"}, after=0)
    with journal.turn(), pytest.raises(JournalMoved):
        journal.append("five", {}, {2: b"b"}, after=2)
    assert [entry.kind for entry in journal.entries()] == ["one"]
    assert journal.next_row() == 2
    journal.append("six", {}, {2: b"b"}, after=1)
    journal.close()


def test_thousands_of_rows_come_back_as_they_were(place: Place) -> None:
    rows = {number: bytes([number % 256]) * (number % 7) for number in range(1, 5001)}
    journal = place.open(create=True)
    journal.append("many", {}, rows, after=0)
    assert journal.rows(rows) == rows
    assert journal.next_row() == 5001
    journal.close()


def test_a_journal_without_entries_can_be_made_again_and_one_with_entries_cannot(place: Place) -> None:
    with pytest.raises(FileNotFoundError, match="there is no"):
        place.open()
    place.open(create=True).close()
    journal = place.open(create=True)
    journal.append("one", {}, after=0)
    journal.close()
    with pytest.raises(FileExistsError, match="exists already"):
        place.open(create=True)


def test_files_are_kept_by_name(place: Place) -> None:
    journal = place.open(create=True)
    files = place.files(journal)
    for content in (b"first", b"", bytes(range(256)) * 2**17):  # the last one has several pieces
        with files.writing("0001.safetensors") as path:
            path.write_bytes(content)
        journal.append("kept", {}, after=len(list(journal.entries())))
        with files.reading("0001.safetensors") as path:
            assert path.read_bytes() == content
    with pytest.raises(FileNotFoundError, match=r"there is no .*0002"), files.reading("0002.safetensors"):
        pass
    journal.close()


def test_a_discarded_file_of_a_turn_that_appended_nothing_is_gone_and_others_stay(place: Place) -> None:
    journal = place.open(create=True)
    files = place.files(journal)
    with journal.turn():
        with files.writing("0001.safetensors") as path:
            path.write_bytes(b"first")
        journal.append("kept", {}, after=0)
    with journal.turn():
        with files.writing("0002.safetensors") as path:
            path.write_bytes(b"second")
        files.discard("0002.safetensors")
        files.discard("0003.safetensors")
    with files.reading("0001.safetensors") as path:
        assert path.read_bytes() == b"first"
    with pytest.raises(FileNotFoundError, match=r"there is no .*0002"), files.reading("0002.safetensors"):
        pass
    journal.close()


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.store.journals import Place
journal = Place(Path(sys.argv[2]), sys.argv[3] or None, sys.argv[4]).open(create=True)
for i in range(1, 10**6):
    with journal.turn():
        journal.append("n", {"i": i}, {i: b"x" * 100}, after=i - 1)
    print(i, flush=True)
"""


@pytest.mark.parametrize("seen", [1, 7, 30])
def test_a_killed_writer_loses_nothing_that_was_acknowledged(place: Place, seen: int) -> None:
    words = [str(Path(__file__).parents[2]), str(place.folder), place.store or "", place.name]
    process = subprocess.Popen([sys.executable, "-c", WRITER, *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(seen)][-1]
    os.kill(process.pid, signal.SIGKILL)
    acknowledged = max([acknowledged, *map(int, process.stdout.read().split())])
    process.stdout.close()
    process.wait()
    journal = place.open()
    # A server notices a moment later that the process is gone; only then is the lock free.
    with journal.turn():
        numbers = [entry.content["i"] for entry in journal.entries()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) in (acknowledged, acknowledged + 1)
    assert journal.next_row() == len(numbers) + 1
    journal.append("late", {}, {len(numbers) + 1: b"y"}, after=len(numbers))
    journal.close()
