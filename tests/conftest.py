"""Shared by all tests."""

import io
import sys
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

from offmap.commands import app
from tests.command_line import Result, Run
from tests.postgres import server

# The same examples in every run: a failure is a failure of the code, not of the day.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
# Several test processes on few cores: one thread each is faster than threads that wait for one another.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _plain_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of the command line come out the same whatever the terminal."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process; ``given`` is its standard input."""

    def run(*arguments: object, given: str = "") -> Result:
        monkeypatch.setattr(sys, "argv", ["offmap", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        with pytest.raises(SystemExit) as stop:
            app.main()
        return Result(int(stop.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server that the tests of one process share; each makes worlds of its own."""
    with server() as url:
        yield url
