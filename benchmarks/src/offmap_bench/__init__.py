"""The papers' tables and figures: what they are, how they are run, and the page that shows them."""

from collections.abc import Collection
from pathlib import Path

import rich.table

from offmap_bench.figure import Figure
from offmap_bench.render import render as render_page
from offmap_bench.render import render_terminal
from offmap_bench.run import run as run_table
from offmap_bench.select import unknown
from offmap_bench.table import Table
from offmap_bench.tables import discover

__all__ = ["Figure", "Table", "everything", "make", "render_all"]


def everything() -> list[Table | Figure]:
    """Lists every table and figure of the papers."""
    return list(discover().values())


def make(
    name: str,
    profile: str = "cpu",
    *,
    rows: Collection[str] | None = None,
    columns: Collection[str] | None = None,
    force: bool = False,
) -> rich.table.Table | str:
    """Runs the table or draws the figure called ``name``, and returns what to show of it.

    Args:
        name: One of ``everything``.
        profile: Which of its profiles.
        rows: Only these rows of a table.
        columns: Only these columns of a table.
        force: Measures again what was measured before.
    """
    known = discover()
    if name not in known:
        raise ValueError(unknown(name, known))
    item = known[name]
    if isinstance(item, Table):
        run_table(item, profile, rows=rows or None, columns=columns or None, force=force)
        return render_terminal(item, profile=profile)
    if rows or columns:
        raise ValueError(f"rows and columns must not be given for a figure; got them for {name!r}")
    return f"drew {item.save(profile)}"


def render_all() -> Path:
    """Writes the page of everything from the stored results and says where it is."""
    return render_page(everything())
