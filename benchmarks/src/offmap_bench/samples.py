"""The stored results of a table, as one sample of numbers per cell and metric."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from offmap_bench.run import Cell, empty_cells
from offmap_bench.table import Table

Samples = dict[tuple[str, str, str], "Sample"]


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


def read_samples(table: Table, profile: str, results: Path) -> tuple[Samples, list[Cell]]:
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


def mean_sample(samples: Sequence[Sample], spec: str) -> Sample:
    """Averages over columns, seed by seed; blank where a column was not run, is undefined or was not printed."""
    complete = not any(sample.undefined for sample in samples)
    seeds = set.intersection(*(set(sample.values) for sample in samples)) if complete else set()
    values = {seed: float(np.mean([sample.values[seed] for sample in samples])) for seed in sorted(seeds)}
    numbers = [sample.printed for sample in samples if isinstance(sample.printed, float | int)]
    printed = format(float(np.mean(numbers)), spec.replace("%", "f")) if len(numbers) == len(samples) else None
    return Sample(values, 0, printed, any(sample.stale for sample in samples))
