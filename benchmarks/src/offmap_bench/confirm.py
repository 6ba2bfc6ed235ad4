"""Finds out whether stored results still come out, so that all cells of a table stand for one commit.

On the same processor and number of torch threads, runs are repeated to the last digits. On others products round
differently, and training amplifies that: there a run may differ by three standard deviations of the cell's seeds.
"""

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import stdev

from offmap.progress import bar
from offmap_bench.places import RESULTS
from offmap_bench.plain import plain
from offmap_bench.provenance import commit, provenance
from offmap_bench.run import Cell, Run, empty_cells, measure, raise_failures, run
from offmap_bench.table import Table

# Words in the name of a metric that is a time or a speed: it comes out differently each time.
_TIMES = {"s", "ms", "seconds"}
_TOLERANCE = 1e-6
# How far a run on another machine may be off, in standard deviations over the seeds.
_DEVIATIONS = 3


@dataclass(frozen=True)
class Confirmed:
    """What became of the cells of a table.

    Args:
        again: Cells that came out again.
        changed: Cells that did not, and were measured anew.
    """

    again: tuple[Cell, ...]
    changed: tuple[Cell, ...]

    def __str__(self) -> str:
        anew = "".join(f"; measured anew: row {cell.row!r}, column {cell.column!r}" for cell in self.changed)
        return f"{len(self.again)} of {len(self.again) + len(self.changed)} cells came out again{anew}"


def confirm(
    table: Table,
    profile: str = "cpu",
    results: Path = RESULTS,
    *,
    rows: Collection[str] | None = None,
    columns: Collection[str] | None = None,
) -> Confirmed:
    """Measures the first stored seed of each cell again, with the code as it is now.

    A cell that comes out again is marked with this commit. All seeds of the others are measured anew. Cells that are
    marked already are passed over, so that an interrupted run resumes; times are not compared.

    Args:
        table: The table.
        profile: One of its profiles.
        results: Folder of the stored cells.
        rows: Only these rows.
        columns: Only these columns.

    Raises:
        ValueError: The code has no commit, or has changes that are not committed; or the table has only times.
        FailedRuns: One or more cells could not be measured; the others were.
    """
    now = _committed()
    if not compared(table.metrics):
        raise ValueError(f"{table.name!r} has only times and speeds, which never come out the same; use --force")
    stored = [place.stored(results) for place in empty_cells(table, profile, rows, columns)]
    todo = [cell for cell in stored if cell is not None and cell.at != now and _valid(table, cell)]
    found: list[Cell] = []
    failures: dict[str, Exception] = {}
    with bar(table.name, total=len(todo)) as shown:
        for cell in todo:
            where = f"row {cell.row!r}, column {cell.column!r}"
            try:
                found.append(_settled(table, cell, now, results))
            except Exception as error:
                failures[where] = error
            shown.advance(note=where)
    raise_failures(table, failures, f"{len(todo)} cells")
    again = [cell for cell in found if cell.confirmed == now]
    return Confirmed(tuple(again), tuple(cell for cell in found if cell.confirmed != now))


def _settled(table: Table, cell: Cell, now: str, results: Path) -> Cell:
    """The cell with the mark of this commit, or measured anew."""
    fresh = measure(table, cell, cell.runs[0].seed)
    if comes_out(cell, fresh):
        marked = replace(cell, confirmed=now)
        marked.write(results)
        return marked
    replace(cell, runs=(fresh,), confirmed=None, **provenance()).write(results)
    (anew,) = run(table, cell.profile, results, rows=[cell.row], columns=[cell.column], seeds=sorted(cell.seeds))
    return anew


def compared(metrics: Collection[str]) -> list[str]:
    """The metrics that must come out the same.

    Example:
        >>> compared(["auroc", "seconds", "ms to add one", "rows / s", "seconds_z"])
        ['auroc']
    """
    return [metric for metric in metrics if not _TIMES & set(re.split(r"[ ,_]+", metric))]


def comes_out(cell: Cell, fresh: Run) -> bool:
    """Whether the first run of a cell and a fresh run of its seed agree, to what their machines allow."""
    return all(_agree(cell, fresh, metric) for metric in compared([*fresh.metrics]))


def _agree(cell: Cell, fresh: Run, metric: str) -> bool:
    before, now = cell.runs[0].metrics[metric], fresh.metrics[metric]
    if before is None or now is None:
        return before is now
    if math.isclose(before, now, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
        return True
    return _rounds_differently(cell) and abs(before - now) <= _DEVIATIONS * _deviation(cell, metric)


def _rounds_differently(cell: Cell) -> bool:
    """Whether a cell was measured on another processor or number of threads, or on ones that are not known."""
    here = provenance()
    return any(getattr(cell, key) != here[key] for key in ("processor", "threads"))


def _deviation(cell: Cell, metric: str) -> float:
    """The sample standard deviation over the seeds of a cell; zero for one seed."""
    values = [number for run in cell.runs if (number := run.metrics[metric]) is not None]
    return stdev(values) if len(values) > 1 else 0.0


def _valid(table: Table, cell: Cell) -> bool:
    """Whether a cell has runs with the parameters and metrics that the table has now."""
    now = plain(table.method(cell.row, cell.profile))
    return bool(cell.runs) and cell.parameters == now and set(table.metrics) <= set(cell.runs[0].metrics)


def _committed() -> str:
    now = commit()
    if now is None or now.endswith("+"):
        raise ValueError("results are confirmed for a commit; commit the changes under src and benchmarks/src first")
    return now
