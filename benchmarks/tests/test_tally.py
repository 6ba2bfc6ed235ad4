"""Every printed number is counted, and each table with printed numbers stands on a page with statements."""

from pathlib import Path

import pytest

from offmap_bench import everything
from offmap_bench.papers import PAPERS, assigned
from offmap_bench.places import RESULTS
from offmap_bench.render import overview
from offmap_bench.run import run
from offmap_bench.table import Table
from offmap_bench.tally import tallies, tally

TABLES = {item.name: item for item in everything() if isinstance(item, Table)}


def measured(printed: float) -> Table:
    """A table whose two rows always measure 1, and a third that is not run."""
    return Table(
        name="t",
        source="Example, Table 1",
        rows={"a": 1, "b": 2, "c": 3},
        columns=("x",),
        metrics=("m",),
        measure=lambda method, column, seed: {"m": 1.0},
        seeds={"cpu": range(2)},
        profiles={"cpu": {}},
        printed={("a", "x", "m"): printed, ("b", "x", "m"): 1.0, ("c", "x", "m"): 1.0},
        higher_is_better={"m": True},
    )


@pytest.mark.parametrize(("printed", "expected"), [(0.5, "beaten"), (2.0, "not reached")])
def test_each_printed_number_is_counted_once(printed: float, expected: str, tmp_path: Path) -> None:
    table = measured(printed)
    run(table, "cpu", tmp_path, rows=["a", "b"])
    assert tally(table, "cpu", tmp_path) == {expected: 1, "reached": 1, "not run": 1}


def test_the_page_of_verdicts_counts_all_that_a_paper_prints() -> None:
    pages = assigned(PAPERS, everything())
    text = overview(pages, RESULTS, "benchmarks")
    for page, items in pages:
        tables = [item for item in items if isinstance(item, Table)]
        counts = tallies(tables, RESULTS)
        assert sum(found.total() for found in counts.values()) == sum(len(table.printed) for table in tables)
        if counts:
            assert f"All {sum(found.total() for found in counts.values())} printed numbers" in text, page.name


def test_each_table_with_printed_numbers_is_on_the_page_of_its_paper() -> None:
    on_pages = {name for page in PAPERS for name in page.items}
    # USNID is not among the papers that the toolkit implements.
    assert {name for name, table in TABLES.items() if table.printed and "USNID" not in table.source} <= on_pages
