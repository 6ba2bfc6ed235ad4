"""Progress bars appear on a terminal only, and on standard error only."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from offmap.progress import bar, quiet

pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")

NESTED = """
import sys
from offmap.progress import bar, quiet

with bar("outer [/] [bold]", total=2) as outer:
    outer.advance()
    print("data for a pipe")
    with bar("inner", total=3) as inner:
        inner.advance(2, note="never seen")
    outer.advance(note="loss [/b] 0.5")
with bar("second", total=1) as second:
    second.advance()
"""
HIDDEN = f"""
from offmap.progress import quiet
with quiet():
    {NESTED.replace(chr(10), chr(10) + "    ")}
"""
FAILING = """
from offmap.progress import bar
try:
    with bar("first", total=2) as first:
        raise ValueError
except ValueError:
    pass
with bar("after", total=1) as after:
    after.advance()
"""


def on_a_terminal(script: str, stdout: Path) -> str:
    """What the script draws on a pseudo-terminal as its standard error; its standard output goes to a file."""
    reader, terminal = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    with stdout.open("w") as stream:
        child = subprocess.Popen([sys.executable, "-c", script], stdout=stream, stderr=terminal, env=environment)
    os.close(terminal)
    drawn = b""
    while chunk := _read(reader):
        drawn += chunk
    os.close(reader)
    assert child.wait() == 0, drawn.decode()
    return drawn.decode()


def _read(reader: int) -> bytes:
    try:
        return os.read(reader, 4096)
    except OSError:  # Linux reports the closed other end as an error.
        return b""


def test_bars_are_drawn_on_standard_error_and_leave_standard_output_to_data(tmp_path: Path) -> None:
    drawn = on_a_terminal(NESTED, tmp_path / "stdout")
    assert "outer [/] [bold]" in drawn
    assert "loss [/b] 0.5" in drawn
    assert "2/2" in drawn
    assert "second" in drawn
    assert "inner" not in drawn
    assert "data for a pipe" not in drawn
    assert (tmp_path / "stdout").read_text() == "data for a pipe\n"


def test_quiet_hides_bars_on_a_terminal(tmp_path: Path) -> None:
    assert on_a_terminal(HIDDEN, tmp_path / "stdout") == ""
    assert (tmp_path / "stdout").read_text() == "data for a pipe\n"


def test_a_bar_is_drawn_after_one_that_failed(tmp_path: Path) -> None:
    assert "after" in on_a_terminal(FAILING, tmp_path / "stdout")


def test_off_a_terminal_nothing_is_drawn() -> None:
    ended = subprocess.run([sys.executable, "-c", NESTED], check=True, capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("data for a pipe\n", "")


def test_quiet_ends_with_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with pytest.raises(ZeroDivisionError), quiet():
        _ = 1 / 0
    with quiet(), bar("hidden", total=1) as hidden:
        assert hidden._progress is None
    with bar("shown", total=1) as shown:
        assert shown._progress is not None
