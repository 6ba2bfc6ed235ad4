"""Figures of total correlation: the staircases, and bias, variance and error at the end of each level."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from offmap.files import replacing
from offmap_bench.figure import Figure
from offmap_bench.run import run
from offmap_bench.tables.total_correlation import DECOMPOSITIONS, SOURCE, STAIRCASE, level
from offmap_bench.tables.total_correlation_staircase import LEVELS, climbed

COLOURS = {"line": "#0072b2", "tree": "#d55e00"}
BANDWIDTH = 200
DRAWN = ("InfoNCE", "MINE", "NWJ", "CLUB", "JS, wide")
BARS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")


def smooth(values: NDArray[np.float64], bandwidth: int = BANDWIDTH) -> NDArray[np.float64]:
    """Returns the running mean of the last ``bandwidth`` values; of fewer at the start."""
    sums = np.cumsum(np.insert(values, 0, 0.0))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - bandwidth, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)


def draw_staircase(name: str, path: Path, profile: str) -> None:
    """Draws the estimate at each step of one seed, by line and by tree, with the truth as stairs."""
    rows = [f"{shape.title()} {name}" for shape in DECOMPOSITIONS]
    run(STAIRCASE, profile, rows=rows)
    drawing = Drawing(figsize=(6.4, 3.8), layout="constrained")
    axes = drawing.subplots()
    for row, shape in zip(rows, DECOMPOSITIONS, strict=True):
        draw_climb(axes, climbed(STAIRCASE.method(row, profile))[0], shape)
    steps = STAIRCASE.method(rows[0], profile).steps
    axes.stairs(LEVELS, steps * np.arange(len(LEVELS) + 1), color="black", linewidth=1.5, label="truth", baseline=None)
    axes.set(xlabel="step", ylabel="total correlation, nats", title=name, ylim=(-0.5, 16))
    axes.legend(loc="upper left")
    with replacing(path) as fresh:
        drawing.savefig(fresh, dpi=130)


def draw_climb(axes: Axes, values: NDArray[np.float64], shape: str) -> None:
    """Draws each value faintly and their running mean clearly."""
    flat = values.ravel()
    axes.plot(flat, color=COLOURS[shape], alpha=0.2, linewidth=0.4)
    axes.plot(smooth(flat), color=COLOURS[shape], linewidth=1.5, label=shape)


def draw_ends(shape: str, path: Path, profile: str) -> None:
    """Draws bias, variance and mean squared error at the end of each level, one bar per estimator."""
    rows = [f"{shape.title()} {name}" for name in DRAWN]
    cells = {(cell.row, cell.column): cell for cell in run(STAIRCASE, profile, rows=rows)}
    drawing = Drawing(figsize=(12, 3.6), layout="constrained")
    panels = drawing.subplots(1, 3)
    labels = {"bias": "bias, nats", "variance": "variance, nats²", "mse": "mean squared error, nats²"}
    for axes, (metric, label) in zip(panels, labels.items(), strict=True):
        for place, (row, colour) in enumerate(zip(rows, BARS, strict=True)):
            heights = [_mean([one.metrics[metric] for one in cells[row, level(total)].runs]) for total in LEVELS]
            offsets = np.array(LEVELS) + 0.3 * (place - 2)
            axes.bar(offsets, heights, width=0.28, color=colour, label=DRAWN[place])
        axes.set(xlabel="true total correlation, nats", ylabel=label, xticks=LEVELS)
    panels[0].axhline(0, color="black", linewidth=0.8)
    for axes in panels[1:]:
        axes.set(yscale="log", ylim=(0.01, 100))
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(DRAWN))
    with replacing(path) as fresh:
        drawing.savefig(fresh, dpi=130)


def _mean(values: list[float | None]) -> float:
    return float(np.mean([np.nan if value is None else value for value in values]))


def _figure(name: str, number: str, caption: str, draw: Callable[[Path, str], None]) -> Figure:
    return Figure(name=name, source=f"{SOURCE}, figure {number} of the thesis", caption=caption, draw=draw)


TABLES = (
    *(
        _figure(
            f"total-correlation-{name.lower().removesuffix(', wide')}",
            "2.2",
            f"Estimates by {name} in training, while the total correlation rises; bold: running means over 200 steps.",
            partial(draw_staircase, name),
        )
        for name in DRAWN
    ),
    *(
        _figure(
            f"total-correlation-{shape}-errors",
            number,
            f"Bias, variance and mean squared error of {shape} estimates over the last 500 batches of each level.",
            partial(draw_ends, shape),
        )
        for shape, number in zip(DECOMPOSITIONS, ("2.6", "2.7"), strict=True)
    ),
)
