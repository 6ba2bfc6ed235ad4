"""Tables of results as text: our mean ± standard deviation beside the paper's number."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from offmap_bench.samples import Sample, Samples, mean_sample
from offmap_bench.table import Table

WIDEST = 8
UNDEFINED = "–"


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


def grids_of(table: Table, samples: Samples) -> list[Grid]:
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
            means = [mean_sample([samples[row, column, metric] for column in columns], spec) for row in rows]
            upright.append(_entries(means, metric, table))
        top = [*columns, "mean"] if averaged else columns
        grids.append(Grid(metric, top, rows, list(zip(*upright, strict=True))).upright())
    return grids
