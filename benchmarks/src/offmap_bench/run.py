"""Runs a table cell by cell, seed by seed; what was measured is on disk and is not measured again."""

import json
import logging
import math
import os
import platform
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from importlib import import_module, metadata
from itertools import product
from pathlib import Path
from types import FunctionType
from typing import Any

from rich.markup import escape

from offmap.errors import WorkFailed
from offmap.files import replacing
from offmap.progress import bar
from offmap_bench.places import HOME
from offmap_bench.table import Table, require_known, settings_of, slug

RESULTS = HOME / "results"
CODE = ("src", "benchmarks/src")
logger = logging.getLogger(__name__)


class FailedRuns(WorkFailed):
    """Some runs of a table failed; the others are on disk."""


@dataclass(frozen=True)
class Run:
    """What one seed gave; a metric that is not a finite number is ``None``."""

    seed: int
    metrics: Mapping[str, float | None]
    seconds: float


@dataclass(frozen=True)
class Cell:
    """The runs of one row in one column; versions, commit and cores are those of the latest run."""

    table: str
    row: str
    column: str
    profile: str
    parameters: Any
    runs: tuple[Run, ...] = ()
    versions: Mapping[str, str | None] | None = None
    commit: str | None = None
    cores: int | None = None

    @property
    def seeds(self) -> set[int]:
        """The seeds that have been run."""
        return {run.seed for run in self.runs}

    def path(self, results: Path = RESULTS) -> Path:
        """Where below ``results`` the cell lies."""
        return results / self.profile / self.table / f"{slug(self.row)}--{slug(self.column)}.json"

    def stored(self, results: Path = RESULTS) -> "Cell | None":
        """Reads the cell of this place, whatever its parameters; none if there is none."""
        path = self.path(results)
        if not path.exists():
            return None
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            cell = Cell(**{**kept, "runs": tuple(Run(**run) for run in kept["runs"])})
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} must hold a benchmark cell; delete it to measure anew ({error})") from error
        # Another label with the same file name was here before: its numbers are not this row's.
        return cell if (cell.row, cell.column) == (self.row, self.column) else None

    def write(self, results: Path = RESULTS) -> None:
        """Stores the cell in one step, so that a kill leaves the old one or the new one."""
        path = self.path(results)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False, allow_nan=False)
        with replacing(path) as draft:
            draft.write_text(text + "\n", encoding="utf-8")


def plain(value: Any) -> Any:
    """Writes a method or a parameter as JSON holds it, so that two are equal only if they do the same.

    Example:
        >>> plain({"hidden": (64, 64), "activation": slug, "lr": float("inf")})
        {'hidden': [64, 64], 'activation': 'offmap_bench.table.slug', 'lr': 'inf'}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    if isinstance(value, type):
        return public_name(value)
    if isinstance(value, FunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    return _plain_object(value)


def public_name(cls: type) -> str:
    """The shortest package that exports ``cls``, and its name: a class that moves between modules keeps it.

    Example:
        >>> from offmap.density import VAEDetector
        >>> public_name(VAEDetector)
        'offmap.density.VAEDetector'
    """
    parts = cls.__module__.split(".")
    for end in range(1, len(parts)):
        package = ".".join(parts[:end])
        if vars(import_module(package)).get(cls.__name__) is cls:
            return f"{package}.{cls.__qualname__}"
    return f"{cls.__module__}.{cls.__qualname__}"


def _plain_object(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if hasattr(value, "get_params") or is_dataclass(value):
        # "outer__inner" repeats what the nested estimator says of itself.
        own = {name: item for name, item in settings_of(value).items() if "__" not in name}
        return {"class": plain(type(value)), **plain(own)}
    if " at 0x" in repr(value):
        raise ValueError(f"parameters must be plain values, estimators or functions with a name; got {value!r}")
    return repr(value)


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=HOME.parent, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def commit() -> str | None:
    """The commit of the running code, with a ``+`` if the code differs from it; none outside its repository."""
    # Installed below some other project, the code is not tracked, and that project's commit says nothing of it.
    head = _git("rev-parse", "HEAD") if _git("ls-files", "--", __file__) else ""
    return head + "+" * bool(_git("status", "--porcelain", "--", *CODE)) if head else None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _circumstances() -> dict[str, Any]:
    versions = {package: _version(package) for package in ("offmap", "torch", "numpy", "scikit-learn")}
    return {"versions": {**versions, "python": platform.python_version()}, "commit": commit(), "cores": os.cpu_count()}


def _measure(table: Table, cell: Cell, seed: int) -> Run:
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
    """Lists the cells of a table as they are before the first run, column by column."""
    require_known("profile", [profile], table.profiles)
    require_known("rows", rows or (), table.rows)
    require_known("columns", columns or (), table.columns)
    settings = {row: plain(table.method(row, profile)) for row in table.rows if rows is None or row in rows}
    chosen = [column for column in table.columns if columns is None or column in columns]
    return [Cell(table.name, row, column, profile, settings[row]) for column, row in product(chosen, settings)]


def _resume(cell: Cell, results: Path, metrics: Collection[str], forget: Collection[int]) -> Cell:
    """Takes up the stored runs that still count: same parameters, every metric there, not to be forgotten."""
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
    """Measures what is missing of a table and returns its cells.

    A seed that was measured with the same parameters is not measured again. A run that fails is reported, the others
    go on, and ``FailedRuns`` lists the failures at the end.

    Args:
        table: The table.
        profile: Which of its profiles.
        results: Folder of the stored cells.
        rows: Only these rows.
        columns: Only these columns.
        seeds: These seeds in place of the profile's.
        force: Measures again what was measured before.
    """
    cells = empty_cells(table, profile, rows, columns)
    seeds = list(dict.fromkeys(table.seeds[profile] if seeds is None else seeds))
    cells = [_resume(cell, results, table.metrics, forget=seeds if force else ()) for cell in cells]
    todo = [(place, seed) for seed in seeds for place, cell in enumerate(cells) if seed not in cell.seeds]
    # The rows of one column and seed in turn, so that what they share is made once.
    todo.sort(key=lambda run: table.columns.index(cells[run[0]].column))
    circumstances = _circumstances()
    failures: dict[str, Exception] = {}
    with bar(table.name, total=len(todo)) as shown:
        for place, seed in todo:
            where = f"row {cells[place].row!r}, column {cells[place].column!r}, seed {seed}"
            try:
                runs = sorted((*cells[place].runs, _measure(table, cells[place], seed)), key=lambda run: run.seed)
                cells[place] = replace(cells[place], runs=tuple(runs), **circumstances)
                cells[place].write(results)
            except Exception as error:
                failures[where] = error
                logger.warning("%s: %s failed: %r", table.name, where, error)
            shown.advance(note=escape(where))
    if failures:
        listed = "; ".join(f"{where}: {error!r}" for where, error in failures.items())
        causes = ExceptionGroup(table.name, [*failures.values()])
        raise FailedRuns(f"{table.name}: {len(failures)} of {len(todo)} runs failed: {listed}") from causes
    return cells
