"""The command line of the benchmarks: results on standard output, messages on standard error, exit codes."""

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import rich.table

import offmap_bench
from offmap_bench import Figure, Table, commands, make, places, render_all


class Result(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        def refuse(word: str) -> Any:
            raise ValueError(f"{word} is not JSON")

        return json.loads(self.out, parse_constant=refuse)


Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["offmap_bench", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            commands.main()
        return Result(int(stop.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replaces the tables by two of one group and a figure, the places by a folder, and returns the columns run."""
    ran: list[str] = []

    def measure(method: int, column: str, seed: int) -> dict[str, float]:
        ran.append(column)
        if method == 13:
            raise RuntimeError("diverged")
        return {"square": method**2 if method < 9 else np.nan}

    def table(name: str, source: str, **rows: int) -> Table:
        shape: dict[str, Any] = {"columns": (name,), "metrics": ("square",), "measure": measure}
        seeds: dict[str, Any] = {"seeds": {"cpu": [0]}, "profiles": {"cpu": {}}}
        return Table(name=name, source=source, rows=rows, **shape, **seeds)

    known = {
        "powers-small": table("powers-small", "Paper, one", two=2, nine=9),
        "powers-large": table("powers-large", "Paper, two", two=2, nine=9),
        "dots": Figure(name="dots", source="Paper, Figure 1", draw=lambda path, profile: path.touch()),
        "unlucky": table("unlucky", "Paper, three", thirteen=13),
    }
    monkeypatch.setattr(offmap_bench, "discover", lambda: known)
    monkeypatch.setattr(places, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(places, "FIGURES", tmp_path / "docs" / "figures")
    monkeypatch.setattr(places, "PAGE", tmp_path / "docs" / "benchmarks.md")
    return ran


def test_tables_and_figures_are_listed(run: Run, calls: list[str]) -> None:
    assert [line["name"] for line in run("--json").data] == ["powers-small", "powers-large", "dots", "unlucky"]
    assert all(name in run().out for name in ("powers-small", "Paper, one", "dots"))
    assert calls == []


def test_tables_are_run_by_name_or_group_and_rendered(run: Run, calls: list[str], tmp_path: Path) -> None:
    done = run("powers", "--row", "two", "--render")
    assert (done.code, calls) == (0, ["powers-small", "powers-large"])
    assert all(source in done.out for source in ("Paper, one", "Paper, two"))
    assert done.err.splitlines()[0] == "running powers-small, profile cpu"
    assert done.err.splitlines()[-1] == f"wrote {tmp_path / 'docs' / 'benchmarks.md'}"
    assert "drew" in run("dots").out
    again = run("powers-small", "--json", "--quiet")
    assert calls[2:] == ["powers-small"]
    assert [cell["runs"][0]["metrics"] for cell in again.data["cells"]] == [{"square": 4.0}, {"square": None}]
    assert again.data["page"] is None
    assert again.err == ""
    run("powers-small", "--row", "two", "--force", "-q")
    assert calls[3:] == ["powers-small"]


def test_everything_is_written_where_places_says_whatever_the_working_directory(
    run: Run, calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run("powers-small", "dots", "--render")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    written = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    cells = [f"results/cpu/powers-small/{row}--powers-small.json" for row in ("nine", "two")]
    assert written == ["docs/benchmarks.md", "docs/benchmarks/toolkit.md", "docs/figures/dots.png", *cells]
    page = tmp_path / "docs" / "benchmarks" / "toolkit.md"
    assert "![dots](../figures/dots.png)" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("powers", "powers-smal"), "did you mean 'powers-small'?"),
        (("power",), "did you mean 'powers'?"),
        (("xyz",), "choose one of powers-small, powers-large, dots, unlucky ('python -m offmap_bench' describes them)"),
        (("powers-small", "--profile", "gpu"), "profile must be among 'cpu'; got 'gpu'"),
        (("powers-small", "--row", "three"), "rows must be among 'two', 'nine'; got 'three'"),
        (("dots", "--row", "two"), "'dots' is a figure, which has no rows or columns"),
        (("--forse",), "No such option"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_run(
    run: Run, calls: list[str], arguments: tuple[str, ...], message: str
) -> None:
    done = run(*arguments)
    assert (done.code, calls, done.out) == (2, [], "")
    assert message in " ".join(re.sub("[│╭╮╰╯─]", " ", done.err).split())


def test_a_run_that_fails_is_one_line_and_its_own_exit_code(run: Run, calls: list[str]) -> None:
    done = run("unlucky", "--quiet")
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert done.err.startswith("offmap_bench: unlucky: 1 of 1 runs failed: row 'thirteen', column 'unlucky', seed 0")


def test_an_interrupt_has_its_own_exit_code(run: Run, calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(offmap_bench, "make", interrupted)
    done = run("dots", "--quiet")
    assert (done.code, done.err.splitlines()[-1]) == (130, "offmap_bench: interrupted")


def test_debugging_shows_the_traceback(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFMAP_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["offmap_bench", "xyz"])
    with pytest.raises(ValueError, match="there is no table or figure 'xyz'"):
        commands.main()


def test_a_copy_outside_the_repository_says_how_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "HOME", Path("nowhere"))
    done = run()
    assert done.code == 2
    assert "install them with pip install --editable ./benchmarks" in done.err


def test_the_module_is_the_command(tmp_path: Path) -> None:
    sources = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-m", "offmap_bench", "--help"]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"PYTHONPATH": sources}
    )
    assert "Usage: python -m offmap_bench [OPTIONS] [NAME]..." in done.stdout
    assert all(
        f"--{option}" in done.stdout
        for option in ("profile", "row", "column", "force", "confirm", "render", "json", "quiet")
    )


def test_make_runs_a_table_and_returns_what_to_show(calls: list[str], tmp_path: Path) -> None:
    shown = make("powers-small", rows=["two"], columns=[], results=tmp_path)
    assert isinstance(shown, rich.table.Table)
    assert [path.name for path in (tmp_path / "cpu" / "powers-small").iterdir()] == ["two--powers-small.json"]
    assert make("dots", figures=tmp_path) == f"drew {tmp_path / 'dots.png'}"
    with pytest.raises(ValueError, match="there is no table or figure 'zzz'"):
        make("zzz")
    page = render_all(tmp_path, tmp_path / "page.md")
    assert "| two | 4.00 |" in (page.with_suffix("") / "toolkit.md").read_text(encoding="utf-8")


def test_the_default_places_are_in_this_repository() -> None:
    benchmarks = Path(__file__).parents[1]
    assert (benchmarks, benchmarks / "results") == (places.HOME, places.RESULTS)
    assert places.FIGURES.parent == places.PAGE.parent == benchmarks.parent / "docs"


def test_modules_keep_their_names() -> None:
    for name in ("run", "render", "table", "figure", "tables"):
        assert importlib.import_module(f"offmap_bench.{name}") is getattr(offmap_bench, name)
