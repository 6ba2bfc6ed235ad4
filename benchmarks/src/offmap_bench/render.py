"""Tables of results for the page and the terminal: our mean ± standard deviation beside the paper's number."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import rich.table
from rich.text import Text

from offmap.files import replacing
from offmap_bench.figure import Figure
from offmap_bench.places import PAGE, RESULTS
from offmap_bench.run import Cell, empty_cells
from offmap_bench.table import Table

WIDEST = 8
UNDEFINED = "–"
LEGEND = """\
Written by `python -m offmap_bench --render` from the stored results. An entry reads *ours* (*the paper's*): our mean
± sample standard deviation over the seeds, and in parentheses the number the paper prints. Entries that were not run
are blank; numbers that the paper does not print have no parentheses. **Bold** marks our best method. – means that the
metric is undefined, and [2 of 3 seeds] that it is defined for those seeds only. † marks results of other parameters
than the table has now. The profile `cpu` is sized for two cores; `paper` follows the paper's own protocol. Seconds are
summed over all runs."""


class Sample(NamedTuple):
    """One metric of one cell: its value for each seed, where it is defined, and the paper's number."""

    values: dict[int, float]
    undefined: int
    printed: float | str | None
    stale: bool

    @property
    def mean(self) -> float:
        """The mean over the seeds; NaN if the metric was not run or is undefined for a seed."""
        return float(np.mean(list(self.values.values()))) if self.values and not self.undefined else np.nan


class Entry(NamedTuple):
    """One entry of a table as text."""

    ours: str
    paper: str
    best: bool


@dataclass(frozen=True)
class Grid:
    """A table of entries with the column labels ``top`` and the row labels ``side``."""

    title: str
    top: Sequence[str]
    side: Sequence[str]
    body: Sequence[Sequence[Entry]]

    def upright(self) -> "Grid":
        """Returns the grid, transposed if it is too wide to read."""
        if len(self.top) <= max(WIDEST, len(self.side)):
            return self
        return Grid(self.title, self.side, self.top, list(zip(*self.body, strict=True)))


def _samples(table: Table, profile: str, results: Path) -> tuple[dict[tuple[str, str, str], Sample], list[Cell]]:
    """Reads each metric of each cell, and returns the cells that were run."""
    samples, cells = {}, []
    for place in empty_cells(table, profile):
        cell = place.stored(results)
        cells += [cell] if cell is not None else []
        stale = cell is not None and cell.parameters != place.parameters
        for metric in table.metrics:
            key = (place.row, place.column, metric)
            samples[key] = _sample(cell, metric, table.printed.get(key), stale)
    return samples, cells


def _sample(cell: Cell | None, metric: str, printed: float | str | None, stale: bool) -> Sample:
    runs = [run for run in cell.runs if metric in run.metrics] if cell is not None else []
    numbers = {run.seed: run.metrics[metric] for run in runs}
    values = {seed: number for seed, number in numbers.items() if number is not None}
    return Sample(values, len(numbers) - len(values), printed, stale)


def _mean(samples: Sequence[Sample], spec: str) -> Sample:
    """Averages over columns, seed by seed; blank where a column was not run, is undefined or was not printed."""
    complete = not any(sample.undefined for sample in samples)
    seeds = set.intersection(*(set(sample.values) for sample in samples)) if complete else set()
    values = {seed: float(np.mean([sample.values[seed] for sample in samples])) for seed in sorted(seeds)}
    numbers = [sample.printed for sample in samples if isinstance(sample.printed, float | int)]
    printed = format(float(np.mean(numbers)), spec.replace("%", "f")) if len(numbers) == len(samples) else None
    return Sample(values, 0, printed, any(sample.stale for sample in samples))


def _number(value: float, spec: str) -> str:
    return format(value, spec).removesuffix("%")


def _ours(sample: Sample, spec: str) -> str:
    values = list(sample.values.values())
    if not values:
        return UNDEFINED + "†" * sample.stale if sample.undefined else ""
    spread = f" ± {_number(float(np.std(values, ddof=1)), spec)}" if len(values) > 1 else ""
    seeds = f" [{len(values)} of {len(values) + sample.undefined} seeds]" if sample.undefined else ""
    return _number(float(np.mean(values)), spec) + spread + seeds + "†" * sample.stale


def _paper(printed: float | str | None, spec: str) -> str:
    """Writes the paper's number in the table's format, unless that would drop some of its digits."""
    if printed is None or isinstance(printed, str):
        return printed or ""
    text = format(printed, spec.replace("%", "f"))
    return text if float(text) == printed else str(printed)


def _entries(samples: Sequence[Sample], metric: str, table: Table) -> list[Entry]:
    """Writes one column of one metric; the best is marked if there are two or more to compare."""
    spec = table.format(metric)
    means = [sample.mean for sample in samples]
    sign = 1 if table.higher_is_better.get(metric, True) else -1
    compared = metric in table.higher_is_better and np.isfinite(means).sum() > 1
    best = _number(sign * float(np.nanmax(sign * np.array(means))), spec) if compared else None
    return [
        Entry(_ours(sample, spec), _paper(sample.printed, spec), _number(mean, spec) == best)
        for sample, mean in zip(samples, means, strict=True)
    ]


def _grids(table: Table, samples: dict[tuple[str, str, str], Sample]) -> list[Grid]:
    """Makes one grid per metric, or one grid of all metrics if the table has a single column."""
    rows, columns = list(table.rows), list(table.columns)

    def entries(column: str, metric: str) -> list[Entry]:
        return _entries([samples[row, column, metric] for row in rows], metric, table)

    if len(columns) == 1:
        body = zip(*(entries(columns[0], metric) for metric in table.metrics), strict=True)
        return [Grid("", table.metrics, rows, list(body)).upright()]
    grids = []
    averaged = table.average and len(columns) > 3
    for metric in table.metrics:
        upright = [entries(column, metric) for column in columns]
        if averaged:
            spec = table.format(metric)
            means = [_mean([samples[row, column, metric] for column in columns], spec) for row in rows]
            upright.append(_entries(means, metric, table))
        top = [*columns, "mean"] if averaged else columns
        grids.append(Grid(metric, top, rows, list(zip(*upright, strict=True))).upright())
    return grids


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|")


def _line(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _markdown_entry(entry: Entry) -> str:
    ours = f"**{entry.ours}**" if entry.best else entry.ours
    return _escape(f"{ours} ({entry.paper})".strip() if entry.paper else ours)


def _markdown_grid(grid: Grid) -> str:
    head = _line(["", *map(_escape, grid.top)])
    rule = _line(["---"] * (len(grid.top) + 1))
    body = [
        _line([_escape(label), *map(_markdown_entry, entries)])
        for label, entries in zip(grid.side, grid.body, strict=True)
    ]
    title = [f"`{grid.title}`", ""] if grid.title else []
    return "\n".join([*title, head, rule, *body])


def _summary(profile: str, cells: Sequence[Cell], total: int) -> str:
    counts = [len(cell.runs) for cell in cells]
    seeds = f"{min(counts)}–{max(counts)}" if min(counts) < max(counts) else f"{max(counts)}"
    seconds = sum(run.seconds for cell in cells for run in cell.runs)
    return f"Profile `{profile}`: {len(cells)} of {total} cells, seeds per cell: {seeds}, {seconds:,.0f} s in total."


def _table_section(table: Table, results: Path) -> list[str]:
    blocks = [table.caption, table.notes, f"Data: {', '.join(table.needs)}." if table.needs else ""]
    for profile in table.profiles:
        samples, cells = _samples(table, profile, results)
        if cells:
            total = len(table.rows) * len(table.columns)
            blocks += [_summary(profile, cells, total), *map(_markdown_grid, _grids(table, samples))]
    return blocks if len(blocks) > 3 else [*blocks, "Not run yet."]


def _figure_section(figure: Figure, folder: Path) -> list[str]:
    drawn = figure.picture(folder).exists()
    return [f"![{figure.name}]({folder.name}/{figure.name}.png)" if drawn else "Not drawn yet.", figure.caption]


def page(tables: Iterable[Table | Figure], results: Path, figures: Path) -> str:
    """Returns the page of all tables and figures as Markdown."""
    tables = list(tables)
    contents = "\n".join(f"- [{table.name}](#{table.name}): {table.source}" for table in tables)
    blocks = ["# Benchmarks", LEGEND, contents]
    for table in tables:
        blocks += [f"## {table.name}", f"*{table.source}*"]
        blocks += _table_section(table, results) if isinstance(table, Table) else _figure_section(table, figures)
    return "\n\n".join(block for block in blocks if block) + "\n"


def render(tables: Iterable[Table | Figure], results: Path = RESULTS, out: Path = PAGE) -> Path:
    """Writes the page to ``out``; it shows the pictures of the folder ``figures`` beside it. Returns ``out``."""
    text = page(tables, results, out.parent / "figures")
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as draft:
        draft.write_text(text, encoding="utf-8")
    return out


def _terminal_entry(entry: Entry) -> Text:
    paper = f" ({entry.paper})" if entry.paper else ""
    return Text.assemble((entry.ours, "bold" if entry.best else ""), (paper, "dim"))


def render_terminal(table: Table, results: Path = RESULTS, profile: str = "cpu") -> rich.table.Table:
    """Returns the table for the terminal, with one section per metric."""
    grids = _grids(table, _samples(table, profile, results)[0])
    shown = rich.table.Table(title=Text(f"{table.name}, {profile}: ours (the paper's)"), caption=Text(table.source))
    for heading in ["", *grids[0].top]:
        shown.add_column(Text(heading))
    for grid in grids:
        if grid.title:
            shown.add_row(Text(grid.title, style="italic"))
        for label, entries in zip(grid.side, grid.body, strict=True):
            shown.add_row(Text(label), *map(_terminal_entry, entries))
        shown.add_section()
    return shown
