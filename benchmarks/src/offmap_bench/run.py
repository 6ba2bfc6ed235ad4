"""Runs the cells of a table for each seed. Results are stored at once, and stored results are not measured again."""

import json
import logging
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from offmap.errors import WorkFailed
from offmap.files import replacing
from offmap.progress import bar
from offmap_bench.places import RESULTS
from offmap_bench.plain import plain
from offmap_bench.provenance import provenance
from offmap_bench.table import Table, require_known, slug

logger = logging.getLogger(__name__)


class FailedRuns(WorkFailed):
    """Some runs of a table failed; the results of the others are stored."""


@dataclass(frozen=True)
class Run:
    """The metrics of one seed; a metric that is not finite is None."""

    seed: int
    metrics: Mapping[str, float | None]
    seconds: float


@dataclass(frozen=True)
class Cell:
    """The runs of one row in one column, with what the latest one was made with.

    ``confirmed`` is a later commit at which one of the runs came out again (``offmap_bench.confirm``).
    """

    table: str
    row: str
    column: str
    profile: str
    parameters: Any
    runs: tuple[Run, ...] = ()
    versions: Mapping[str, str | None] | None = None
    commit: str | None = None
    cores: int | None = None
    threads: int | None = None
    processor: str | None = None
    confirmed: str | None = None

    @property
    def at(self) -> str | None:
        """The last commit that is known to give these runs."""
        return self.confirmed or self.commit

    @property
    def seeds(self) -> set[int]:
        """The seeds that were run."""
        return {run.seed for run in self.runs}

    def path(self, results: Path = RESULTS) -> Path:
        """Returns the path of the cell's file below ``results``."""
        return results / self.profile / self.table / f"{slug(self.row)}--{slug(self.column)}.json"

    def stored(self, results: Path = RESULTS) -> "Cell | None":
        """Reads the stored cell of this row and column, whatever its parameters; None if there is none."""
        path = self.path(results)
        if not path.exists():
            return None
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            cell = Cell(**{**kept, "runs": tuple(Run(**run) for run in kept["runs"])})
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} is not a stored benchmark cell; delete it to measure again ({error})") from error
        # The file may belong to an earlier label that has the same file name.
        return cell if (cell.row, cell.column) == (self.row, self.column) else None

    def write(self, results: Path = RESULTS) -> None:
        """Stores the cell. A process that is killed meanwhile leaves the old file or the new one, never a part."""
        path = self.path(results)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False, allow_nan=False)
        with replacing(path) as draft:
            draft.write_text(text + "\n", encoding="utf-8")


def measure(table: Table, cell: Cell, seed: int) -> Run:
    """Runs one seed of a cell."""
    method = table.method(cell.row, cell.profile)
    start = time.perf_counter()
    metrics = table.measure(method, cell.column, seed)
    seconds = round(time.perf_counter() - start, 3)
    if set(metrics) != set(table.metrics):
        raise ValueError(f"measure must return the metrics {', '.join(table.metrics)}; got {', '.join(metrics)}")
    numbers = {name: float(metrics[name]) for name in table.metrics}
    return Run(seed, {name: n if math.isfinite(n) else None for name, n in numbers.items()}, seconds)


def empty_cells(
    table: Table, profile: str, rows: Collection[str] | None = None, columns: Collection[str] | None = None
) -> list[Cell]:
    """Returns the cells of a table without runs, column by column."""
    require_known("profile", [profile], table.profiles)
    require_known("rows", rows or (), table.rows)
    require_known("columns", columns or (), table.columns)
    settings = {row: plain(table.method(row, profile)) for row in table.rows if rows is None or row in rows}
    chosen = [column for column in table.columns if columns is None or column in columns]
    return [Cell(table.name, row, column, profile, settings[row]) for column, row in product(chosen, settings)]


def _resume(cell: Cell, results: Path, metrics: Collection[str], forget: Collection[int]) -> Cell:
    """Adds the stored runs that are still valid: same parameters, all metrics, and a seed not in ``forget``."""
    stored = cell.stored(results)
    if stored is None or stored.parameters != cell.parameters:
        return cell
    kept = [run for run in stored.runs if run.seed not in forget and set(metrics) <= set(run.metrics)]
    return replace(stored, runs=tuple(kept))


def run(
    table: Table,
    profile: str = "cpu",
    results: Path = RESULTS,
    *,
    rows: Collection[str] | None = None,
    columns: Collection[str] | None = None,
    seeds: Sequence[int] | None = None,
    force: bool = False,
) -> list[Cell]:
    """Measures the missing cells of a table and returns all of them.

    A seed that was measured with the same parameters is not measured again. A run that fails is logged and the others
    continue.

    Args:
        table: The table.
        profile: One of its profiles.
        results: Folder of the stored cells.
        rows: Runs only these rows.
        columns: Runs only these columns.
        seeds: Seeds to use instead of the profile's.
        force: Repeats runs whose results are stored.

    Raises:
        FailedRuns: One or more runs failed; the message lists them.
    """
    cells = empty_cells(table, profile, rows, columns)
    seeds = list(dict.fromkeys(table.seeds[profile] if seeds is None else seeds))
    cells = [_resume(cell, results, table.metrics, forget=seeds if force else ()) for cell in cells]
    todo = _missing(table, cells, seeds)
    failures = _run_missing(table, cells, todo, results)
    raise_failures(table, failures, f"{len(todo)} runs")
    return cells


def raise_failures(table: Table, failures: Mapping[str, Exception], total: str) -> None:
    """Raises a ``FailedRuns`` that lists the errors by place, if there are any.

    Args:
        table: The table.
        failures: The errors.
        total: How many of what were to be measured.
    """
    if failures:
        listed = "; ".join(f"{where}: {error!r}" for where, error in failures.items())
        causes = ExceptionGroup(table.name, [*failures.values()])
        raise FailedRuns(f"{table.name}: {len(failures)} of {total} failed: {listed}") from causes


def _missing(table: Table, cells: Sequence[Cell], seeds: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the cells (by position) and seeds that were not run."""
    todo = [(place, seed) for seed in seeds for place, cell in enumerate(cells) if seed not in cell.seeds]
    # Rows of one column and seed follow each other, so that data they share are prepared once.
    return sorted(todo, key=lambda run: table.columns.index(cells[run[0]].column))


def _run_missing(
    table: Table, cells: list[Cell], todo: Sequence[tuple[int, int]], results: Path
) -> dict[str, Exception]:
    """Runs and stores each cell and seed of ``todo``, updating ``cells``; returns the errors by place."""
    made_with = provenance()
    failures: dict[str, Exception] = {}
    with bar(table.name, total=len(todo)) as shown:
        for place, seed in todo:
            cell = cells[place]
            where = f"row {cell.row!r}, column {cell.column!r}, seed {seed}"
            try:
                runs = sorted((*cell.runs, measure(table, cell, seed)), key=lambda run: run.seed)
                cells[place] = replace(cell, runs=tuple(runs), confirmed=None, **made_with)
                cells[place].write(results)
            except Exception as error:
                failures[where] = error
                logger.warning("%s: %s failed: %r", table.name, where, error)
            shown.advance(note=where)
    return failures
