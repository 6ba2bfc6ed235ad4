import importlib
from collections.abc import Callable
from pathlib import Path

import pytest
import rich.table

import offmap_bench as bench
from offmap_bench import Figure, Table, make, render_all


@pytest.fixture(autouse=True)
def papers(make_table: Callable[..., Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = Figure(name="dots", source="Isolation, Figure 1", draw=lambda path, profile: path.touch())
    known = {"forests": make_table(), "dots": figure}
    monkeypatch.setattr(bench, "discover", lambda: known)
    monkeypatch.chdir(tmp_path)


def test_a_table_is_run_and_shown() -> None:
    shown = make("forests", rows=["small"], columns=[])
    assert isinstance(shown, rich.table.Table)
    cells = sorted(path.name for path in Path("benchmarks/results/cpu/forests").iterdir())
    assert cells == ["small--shift-1.json", "small--shift-3.json"]


def test_a_figure_is_drawn_and_the_page_shows_it() -> None:
    assert make("dots") == f"drew {Path('docs/figures/dots.png')}"
    assert "![dots](figures/dots.png)" in render_all().read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("forest", None, "did you mean 'forests'"),
        ("zzz", None, "known: forests, dots"),
        ("dots", ["small"], "rows and columns must not be given"),
    ],
)
def test_a_wrong_wish_is_explained(name: str, rows: list[str] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(name, rows=rows)


def test_modules_keep_their_names() -> None:
    for name in ("run", "render", "table", "figure", "tables"):
        assert importlib.import_module(f"offmap_bench.{name}") is getattr(bench, name)
