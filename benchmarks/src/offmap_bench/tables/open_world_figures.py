"""The figure of the open-world loop: what decisions achieve, and whether the promise holds, round by round."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from offmap.files import replacing
from offmap_bench.figure import Figure
from offmap_bench.run import run
from offmap_bench.tables import open_world_loop as loop

COLUMNS = tuple(column for column in loop.BY_ROUNDS.columns if column.startswith("BANKING"))
LINE, BAND, PROMISE = "#0072b2", 0.2, "#d55e00"


def by_round(profile: str) -> dict[str, NDArray[np.float64]]:
    """Each metric of the rounds, one line per round and one column per seed."""
    cells = {cell.column: cell for cell in run(loop.BY_ROUNDS, profile, columns=COLUMNS)}
    return {
        metric: np.array([[one.metrics[metric] for one in cells[column].runs] for column in COLUMNS], float)
        for metric in loop.BY_ROUND
    }


def draw(path: Path, profile: str) -> None:
    """Plots accuracy against decisions and rows read, and false alarms over the rounds with the promise as a line."""
    found = by_round(profile)
    drawing = Drawing(figsize=(10, 3.4), layout="constrained")
    panels = zip(drawing.subplots(1, 3), ("decisions", "rows read", "round"), strict=True)
    for axes, against in panels:
        metric = "false alarms" if against == "round" else "accuracy"
        at = np.arange(1, loop.ROUNDS + 1) if against == "round" else found[against].mean(axis=1)
        heights = 100 * found[metric]
        axes.plot(at, heights.mean(axis=1), "o-", color=LINE, label="mean of the seeds")
        axes.fill_between(at, heights.min(axis=1), heights.max(axis=1), color=LINE, alpha=BAND, label="all seeds")
        axes.set(xlabel=against, ylabel=f"{metric}, %", ylim=(0, None))
        axes.grid(alpha=0.3)
    axes.axhline(10, color=PROMISE, linestyle="--", label="promise")
    axes.legend(loc="lower right")
    with replacing(path) as fresh:
        drawing.savefig(fresh, dpi=130)


TABLES = (
    Figure(
        name="open-world-rounds-banking",
        source="No paper: the loop of this toolkit",
        caption="BANKING from 19 intents to 77 in six rounds, α = 0.1, with one row read per group.",
        draw=draw,
        needs=("banking",),
    ),
)
