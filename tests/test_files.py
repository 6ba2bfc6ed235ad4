"""A file is replaced whole or not at all."""

import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from offmap.files import replacing

KILLED_WHILE_WRITING = """
import os, signal, sys
from offmap.files import replacing
with replacing(sys.argv[1]) as fresh:
    fresh.write_text("half of the n")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    path.write_text("old")
    return path


def test_a_block_without_an_error_replaces_the_file(old: Path) -> None:
    with replacing(str(old)) as fresh:
        fresh.write_text("new")
        assert old.read_text() == "old"
        assert fresh.suffix == ".csv"
    assert old.read_text() == "new"
    assert list(old.parent.iterdir()) == [old]


@pytest.mark.parametrize("error", [RuntimeError("half way"), KeyboardInterrupt()])
def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(old: Path, error: BaseException) -> None:
    def fail() -> None:
        with replacing(old) as fresh:
            fresh.write_text("half of the n")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert old.read_text() == "old"
    assert list(old.parent.iterdir()) == [old]


def test_a_kill_leaves_the_old_file_whole(old: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(old)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert old.read_text() == "old"


def test_what_killed_processes_left_is_removed_and_what_others_write_is_not(old: Path) -> None:
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(old)], check=False)
    assert len(list(old.parent.iterdir())) == 2
    with replacing(old) as mine, replacing(old) as another:
        assert {*old.parent.iterdir()} == {old, mine, another}
        another.write_text("other")
        mine.write_text("mine")
    assert list(old.parent.iterdir()) == [old]
    assert old.read_text() == "mine"


def test_threads_that_write_leave_the_umask_alone(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:

        def write(number: int) -> int:
            with replacing(tmp_path / f"{number % 7}.csv") as fresh:
                fresh.write_text("new")
            (tmp_path / f"{number}.txt").touch()
            return mode(tmp_path / f"{number}.txt")

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(write, range(300))) == {0o640}
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)


def test_bytes_are_on_disk_before_the_name_points_to_them(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda _: seen.append(old.read_text()))
    with replacing(old) as fresh:
        fresh.write_text("new")
    assert seen == ["old"]


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    with (
        pytest.raises(FileNotFoundError, match=r"cannot write .*scores\.csv: the folder .*absent does not exist"),
        replacing(tmp_path / "absent" / "scores.csv"),
    ):
        pass
    with pytest.raises(IsADirectoryError, match=r"cannot write .*: it is a folder"), replacing(tmp_path):
        pass
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"cannot write .*pipe: it is a device or a pipe"), replacing(tmp_path / "pipe"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_a_new_file_gets_the_permissions_that_open_gives(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        (tmp_path / "by_open").touch()
        with replacing(tmp_path / "by_replacing"):
            pass
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert mode(tmp_path / "by_replacing") == mode(tmp_path / "by_open") == 0o666 & ~mask


def test_an_old_file_keeps_its_permissions_and_a_link_stays_a_link(old: Path) -> None:
    old.chmod(0o600)
    link = old.with_name("link.csv")
    link.symlink_to(old)
    with replacing(link) as fresh:
        fresh.write_text("new")
    assert link.is_symlink()
    assert old.read_text() == "new"
    assert mode(old) == 0o600


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
