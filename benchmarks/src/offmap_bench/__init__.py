"""The tables and figures of the papers that Offmap implements: definitions, runs and the page of results."""

from collections.abc import Collection
from pathlib import Path

import rich.table

from offmap_bench.confirm import confirm as confirm_table
from offmap_bench.figure import Figure
from offmap_bench.places import FIGURES, PAGE, RESULTS
from offmap_bench.render import render as render_page
from offmap_bench.render import render_terminal
from offmap_bench.run import run as run_table
from offmap_bench.select import unknown
from offmap_bench.table import Table
from offmap_bench.tables import discover

__all__ = ["Figure", "Table", "everything", "make", "render_all"]


def everything() -> list[Table | Figure]:
    """Returns every table and figure."""
    return list(discover().values())


def make(
    name: str,
    profile: str = "cpu",
    *,
    rows: Collection[str] | None = None,
    columns: Collection[str] | None = None,
    force: bool = False,
    confirm: bool = False,
    results: Path = RESULTS,
    figures: Path = FIGURES,
) -> rich.table.Table | str:
    """Runs a table or draws a figure, and returns what to print about it.

    Args:
        name: Name of the table or figure.
        profile: One of its profiles.
        rows: Runs only these rows of a table.
        columns: Runs only these columns of a table.
        force: Repeats runs whose results are stored.
        confirm: Finds out whether stored results still come out, in place of running the table.
        results: Folder of the stored cells.
        figures: Folder that figures are drawn into.
    """
    known = discover()
    if name not in known:
        raise ValueError(unknown(name, known))
    item = known[name]
    if force and confirm:
        raise ValueError("--force and --confirm exclude each other: one repeats all runs, the other one run per cell")
    if isinstance(item, Table) and confirm:
        return f"{name}: {confirm_table(item, profile, results, rows=rows or None, columns=columns or None)}"
    if isinstance(item, Table):
        run_table(item, profile, results, rows=rows or None, columns=columns or None, force=force)
        return render_terminal(item, results, profile)
    if confirm:
        raise ValueError(f"{name!r} is a figure, which has no stored runs to confirm; leave --confirm out")
    if rows or columns:
        raise ValueError(f"{name!r} is a figure, which has no rows or columns to choose from; leave them out")
    return f"drew {item.save(profile, figures)}"


def render_all(results: Path = RESULTS, page: Path = PAGE) -> Path:
    """Writes the page of all tables and figures from the stored results and returns its path."""
    return render_page(everything(), results, page)
