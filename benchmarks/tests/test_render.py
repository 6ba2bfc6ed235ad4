import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from sklearn.ensemble import IsolationForest

from offmap_bench import Figure, Table
from offmap_bench.claims import Claim
from offmap_bench.papers import Page
from offmap_bench.render import LEGEND, overview, page_of, render, render_terminal
from offmap_bench.run import run

OFFSETS = {"shift 1": 0.0, "shift 3": 0.1, "shift 5": 0.2, "shift 7": 0.3}


def stepped(method: Any, column: str, seed: int) -> dict[str, float]:
    """Larger forests score higher; seeds lie 0.1 apart."""
    return {"auroc": method.n_estimators / 20 + OFFSETS.get(column, 0.0) + seed / 10, "fpr95": method.n_estimators / 10}


@pytest.fixture
def table(make_table: Callable[..., Table]) -> Table:
    return make_table(
        metrics=("auroc", "fpr95"),
        measure=stepped,
        printed={
            ("small", "shift 1", "auroc"): 0.9,
            ("large", "shift 3", "auroc"): 0.987,
            ("small", "shift 3", "fpr95"): "12±1",
        },
        higher_is_better={"auroc": True, "fpr95": False},
        formats={"fpr95": ".1%"},
        caption="Forests on clouds.",
        notes="Clouds of 64 points.",
        needs=("mnist",),
    )


def without_seconds(text: str) -> str:
    return re.sub(r"[\d,]+ s in", "0 s in", text)


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")]


def page(items: list[Table | Figure], results: Path, figures: Path) -> str:
    return page_of(Page(name="forests", title="Forests"), items, results, figures, figures.parent / "forests.md")


GOLDEN = f"""\
# Benchmarks of the toolkit

Beyond the papers: false-alarm rates, simple baselines, tables, explanations, new classes.

{LEGEND}

- [forests](#forests): Forests on clouds.
- [dots](#dots): Dots.

## forests

*Isolation, Table 1*

Forests on clouds.

Data: mnist.

Profile `cpu`: 3 of 4 cells, seeds per cell: 1–3, 0 s in total, COMMIT. One seed: small (shift 3).

`auroc`

|  | shift 1 | shift 3 |
| --- | --- | --- |
| small | 0.20 ± 0.10 (0.90) | 0.20 |
| large | **0.50 ± 0.10** | (0.987) |

`fpr95`

|  | shift 1 | shift 3 |
| --- | --- | --- |
| small | **20.0 ± 0.0** | 20.0 (12±1) |
| large | 80.0 ± 0.0 |  |

<details><summary>Protocol</summary>

Clouds of 64 points.

</details>

## dots

*Isolation, Figure 1*

![dots](../figures/dots.png)

Dots.
"""


def test_the_page_is_as_written_here(table: Table, tmp_path: Path) -> None:
    figure = Figure(name="dots", source="Isolation, Figure 1", caption="Dots.", draw=lambda path, _: path.touch())
    figure.save(folder=tmp_path / "docs" / "figures")
    run(table, results=tmp_path, columns=["shift 1"])
    run(table, results=tmp_path, columns=["shift 3"], rows=["small"], seeds=[0])
    out = tmp_path / "docs" / "benchmarks.md"
    render([table, figure], tmp_path, out)
    written = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in (tmp_path / "docs").rglob("*.md")}
    assert sorted(written) == ["docs/benchmarks.md", "docs/benchmarks/toolkit.md"]
    text = without_seconds(written["docs/benchmarks/toolkit.md"].decode())
    assert re.sub(r"commit [0-9a-f]{7}", "COMMIT", text) == GOLDEN
    render([table, figure], tmp_path, out)
    assert all((tmp_path / name).read_bytes() == content for name, content in written.items())


def test_the_overview_states_each_claim_with_its_verdict_and_link(table: Table, tmp_path: Path) -> None:
    run(table, results=tmp_path, columns=["shift 1"])
    claims = (
        Claim(item="small", table="forests", row="small", columns=("shift 1",), metric="auroc", cause="too small"),
        Claim(item="order", table="forests", row="large", above="small", columns=("shift 1",), metric="auroc"),
    )
    paper = Page(name="trees", title="Trees", about="Of trees.", claims=claims)
    page = overview([(paper, [table])], tmp_path, "pages")
    verdicts, counts = lines(page)[2:4], lines(page)[4:]
    assert verdicts == [
        "| [small](pages/trees.md#forests) | 0.2 | 0.9 | 3 | not reached | too small |",
        "| [order](pages/trees.md#forests) | 0.5 against 0.2 | above small | 3 | reached |  |",
    ]
    assert counts[-1].startswith(f"| [forests](pages/trees.md#forests) | {len(table.printed)} |")
    assert f"All {len(table.printed)} printed numbers, other methods' included: " in page


def test_what_was_not_run_is_said(table: Table, tmp_path: Path) -> None:
    figure = Figure(name="dots", source="Isolation, Figure 1", draw=lambda path, _: None)
    text = page([table, figure], tmp_path, tmp_path / "figures")
    assert "Not run yet." in text
    assert "Not drawn yet." in text
    assert not lines(text)


def test_rows_with_one_seed_are_named_only_where_others_have_more(
    make_table: Callable[..., Table], tmp_path: Path
) -> None:
    narrow = make_table(columns=("shift 1",), metrics=("auroc", "fpr95"), measure=stepped)
    run(narrow, results=tmp_path, seeds=[0])
    assert "One seed" not in page([narrow], tmp_path, tmp_path)
    run(narrow, results=tmp_path, rows=["small"])
    assert "One seed: large.\n" in page([narrow], tmp_path, tmp_path)


def test_a_number_of_ours_is_never_the_papers(table: Table, tmp_path: Path) -> None:
    run(table, results=tmp_path, rows=["small"], columns=["shift 1"])
    for line in lines(page([table], tmp_path, tmp_path)):
        if line.startswith("| large"):
            assert not re.sub(r"\(.*?\)", "", line.removeprefix("| large")).strip(" |")


def test_one_column_puts_the_metrics_across(table: Table, make_table: Callable[..., Table], tmp_path: Path) -> None:
    narrow = make_table(columns=("shift 1",), metrics=table.metrics, measure=stepped)
    run(narrow, results=tmp_path, seeds=[0])
    assert lines(page([narrow], tmp_path, tmp_path)) == [
        "|  | auroc | fpr95 |",
        "| --- | --- | --- |",
        "| small | 0.10 | 0.20 |",
        "| large | 0.40 | 0.80 |",
    ]


def test_the_mean_is_over_columns_and_needs_them_all(make_table: Callable[..., Table], tmp_path: Path) -> None:
    printed = {("small", column, "auroc"): 0.51 + offset / 3 for column, offset in OFFSETS.items()}
    wide = make_table(
        columns=tuple(OFFSETS),
        measure=lambda m, column, seed: {"auroc": stepped(m, column, seed)["auroc"]},
        printed={**printed, ("large", "shift 7", "auroc"): 0.7},
        average=True,
    )
    run(wide, results=tmp_path, rows=["small"])
    run(wide, results=tmp_path, rows=["large"], columns=["shift 1"])
    head, _, small, large = lines(page([wide], tmp_path, tmp_path))
    assert head.endswith("| shift 7 | mean |")
    assert small.endswith("| 0.35 ± 0.10 (0.56) |")
    assert large == "| large | 0.50 ± 0.10 |  |  | (0.70) |  |"


def test_a_wide_table_stands_upright(make_table: Callable[..., Table], tmp_path: Path) -> None:
    columns = tuple(f"shift {place}" for place in range(9))
    wide = make_table(columns=columns, measure=lambda m, c, s: {"auroc": float(c.split()[-1])})
    run(wide, results=tmp_path, seeds=[0])
    text = lines(page([wide], tmp_path, tmp_path))
    assert text[0] == "|  | small | large |"
    assert text[-1] == "| shift 8 | 8.00 | 8.00 |"


@pytest.mark.parametrize(
    ("values", "entry"),
    [
        ((np.nan, np.nan, np.nan), "–"),
        ((0.5, np.nan, 0.6), "0.55 ± 0.07 [2 of 3 seeds]"),
        ((0.5, np.inf, np.nan), "0.50 [1 of 3 seeds]"),
        ((0.5, 0.6, 0.7), "0.60 ± 0.10"),
    ],
)
def test_undefined_seeds_are_counted_and_old_parameters_are_marked(
    make_table: Callable[..., Table], tmp_path: Path, values: tuple[float, ...], entry: str
) -> None:
    table = make_table(measure=lambda m, c, s: {"auroc": values[s]})
    run(table, results=tmp_path, rows=["small"], columns=["shift 1"])
    assert lines(page([table], tmp_path, tmp_path))[2] == f"| small | {entry} |  |"
    changed = make_table(rows={"small": IsolationForest(n_estimators=3), "large": IsolationForest()})
    assert lines(page([changed], tmp_path, tmp_path))[2] == f"| small | {entry}† |  |"


def test_a_cell_that_is_undefined_for_a_seed_is_not_the_best(make_table: Callable[..., Table], tmp_path: Path) -> None:
    def measure(method: Any, column: str, seed: int) -> dict[str, float]:
        return {"auroc": (0.9, 0.9, np.nan)[seed] if method.n_estimators == 8 else 0.5 + method.n_estimators / 100}

    rows = {str(trees): IsolationForest(n_estimators=trees) for trees in (2, 4, 8)}
    table = make_table(measure=measure, rows=rows, columns=("shift 1", "shift 3"), higher_is_better={"auroc": True})
    run(table, results=tmp_path)
    entries = [line.split(" | ")[1] for line in lines(page([table], tmp_path, tmp_path))[2:]]
    assert entries == ["0.52 ± 0.00", "**0.54 ± 0.00**", "0.90 ± 0.00 [2 of 3 seeds]"]


@pytest.mark.parametrize("undefined", [(0, 1, 2), (1,)])
def test_the_mean_is_blank_where_a_column_is_undefined(
    make_table: Callable[..., Table], tmp_path: Path, undefined: tuple[int, ...]
) -> None:
    def measure(method: Any, column: str, seed: int) -> dict[str, float]:
        lacking = method.n_estimators == 2 and column == "shift 3" and seed in undefined
        return {"auroc": np.nan if lacking else 0.5}

    table = make_table(columns=tuple(OFFSETS), measure=measure, average=True)
    run(table, results=tmp_path)
    _, _, small, large = lines(page([table], tmp_path, tmp_path))
    assert small.endswith("| 0.50 ± 0.00 |  |")
    assert large.endswith("| 0.50 ± 0.00 | 0.50 ± 0.00 |")


def test_a_metric_that_was_not_yet_measured_is_blank_or_left_out(
    make_table: Callable[..., Table], tmp_path: Path
) -> None:
    run(make_table(measure=lambda m, c, s: {"auroc": 0.5}), results=tmp_path)
    text = page([make_table(metrics=("auroc", "aupr"))], tmp_path, tmp_path)
    assert "`aupr`" not in text
    printed = {("small", "shift 1", "aupr"): 0.9}
    text = page([make_table(metrics=("auroc", "aupr"), printed=printed)], tmp_path, tmp_path)
    assert lines(text)[-2:] == ["| small | (0.90) |  |", "| large |  |  |"]


def test_pipes_in_labels_are_escaped(make_table: Callable[..., Table], tmp_path: Path) -> None:
    rows = {"p(x|z)": IsolationForest(n_estimators=2), "large": IsolationForest(n_estimators=8)}
    table = make_table(rows=rows, measure=lambda m, c, s: {"auroc": 0.5})
    run(table, results=tmp_path, seeds=[0])
    text = lines(page([table], tmp_path, tmp_path))
    assert text[2] == r"| p(x\|z) | 0.50 | 0.50 |"


def test_the_terminal_shows_the_same_numbers(table: Table, tmp_path: Path) -> None:
    run(table, results=tmp_path, columns=["shift 1"])
    console = Console(width=100, file=io.StringIO(), record=True)
    console.print(render_terminal(table, tmp_path))
    text = console.export_text()
    for expected in ("forests, cpu", "auroc", "0.20 ± 0.10 (0.90)", "(0.987)", "fpr95", "(12±1)", "Isolation, Table 1"):
        assert expected in text


def test_all_but_the_first_two_metrics_are_folded(make_table: Callable[..., Table], tmp_path: Path) -> None:
    names = ("a", "b", "c", "d")
    table = make_table(metrics=names, measure=lambda m, c, s: dict.fromkeys(names, 1.0))
    run(table, results=tmp_path)
    text = page([table], tmp_path, tmp_path)
    shown, _, folded = text.partition("<details><summary><code>c</code>, <code>d</code></summary>")
    assert [f"`{name}`" in shown for name in names] == [True, True, False, False]
    assert [f"`{name}`" in folded.partition("</details>")[0] for name in names] == [False, False, True, True]
