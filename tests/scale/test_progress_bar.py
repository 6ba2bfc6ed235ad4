"""The progress bar of a stream: rows, rows per second, and only on a terminal."""

import sys
from pathlib import Path

import pytest

from offmap.scale import score_files
from tests.scale.tables import fitted, numbers, write


@pytest.mark.parametrize("terminal", [True, False])
def test_rows_per_second_are_shown_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool
) -> None:
    source = write(numbers(300), tmp_path / "rows.parquet")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "xterm")
    score_files(fitted(), source, tmp_path / "s.parquet", part_rows=100)
    shown = capsys.readouterr().err
    assert ("300/300" in shown, "rows/s" in shown) == (terminal, terminal)
