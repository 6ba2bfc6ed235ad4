"""The figures of the open-world loop: what decisions achieve, whether the promise holds, and what groups look like."""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray
from sklearn.manifold import TSNE

from offmap.files import replacing
from offmap.loop import GroupView, OpenWorld
from offmap_bench.figure import Figure
from offmap_bench.intent_stream import Stream, stream
from offmap_bench.run import run
from offmap_bench.tables import open_world_loop as loop
from offmap_bench.tables.open_intents import SETS

LINE, BAND, PROMISE, NEUTRAL = "#0072b2", 0.2, "#d55e00", "#bbbbbb"
# Groups that are drawn, each in its own colour and shape.
SHOWN, SHAPES = 12, "os^D"
COLOURS = ("#0072b2", "#d55e00", "#009e73")


def by_round(name: str, profile: str) -> dict[str, NDArray[np.float64]]:
    """Each metric of the rounds, one line per round and one column per seed."""
    columns = [column for column in loop.BY_ROUNDS.columns if column.startswith(name)]
    cells = {cell.column: cell for cell in run(loop.BY_ROUNDS, profile, columns=columns)}
    return {
        metric: np.array([[one.metrics[metric] for one in cells[column].runs] for column in columns], float)
        for metric in loop.BY_ROUND
    }


def draw(path: Path, profile: str, name: str) -> None:
    """Plots accuracy against decisions and rows read, and false alarms over the rounds with the promise as a line."""
    found = by_round(name, profile)
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


def first_groups(name: str, seed: int = 0) -> tuple[Stream, list[GroupView]]:
    """The groups of the first round, those that teach most first, and the stream that their rows are of."""
    data = stream(name, seed)
    with tempfile.TemporaryDirectory() as folder:
        model = loop.classifier(0.1, seed)
        with OpenWorld.create(Path(folder) / "world", classifier=model, review=loop.Loop().review, seed=seed) as world:
            world.teach(data.X_known, data.y_known)
            part = np.array_split(np.arange(len(data.X)), loop.ROUNDS)[0]
            world.observe(data.X[part], ids=part.tolist())
            return data, world.groups()


def draw_map(path: Path, profile: str) -> None:
    """Plots the rows of the first round in the plane, the groups that teach most in colour."""
    data, groups = first_groups("BANKING")
    rows = np.concatenate([[int(row) for row in group.rows] for group in groups])
    perplexity = min(30.0, len(rows) / 4)
    at = TSNE(perplexity=perplexity, init="pca", random_state=0, metric="cosine").fit_transform(data.X[rows])
    places = dict(zip(rows.tolist(), at, strict=True))
    drawing = Drawing(figsize=(9, 5.4), layout="constrained")
    axes = drawing.subplots()
    axes.scatter(at[:, 0], at[:, 1], s=8, color=NEUTRAL, label="other groups")
    for number, group in enumerate(groups[:SHOWN]):
        own = np.stack([places[int(row)] for row in group.rows])
        label = str(data.y[int(group.rows[0])]).replace("_", " ")
        colour, shape = COLOURS[number % len(COLOURS)], SHAPES[number // len(COLOURS)]
        axes.scatter(
            own[:, 0], own[:, 1], s=26, color=colour, marker=shape, edgecolor="white", linewidth=0.4, label=label
        )
    axes.set(xticks=[], yticks=[])
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small", title="named after the centre")
    with replacing(path) as fresh:
        drawing.savefig(fresh, dpi=130)


def _rounds_of(name: str, known: int, classes: int) -> Figure:
    return Figure(
        name=f"open-world-rounds-{name.lower()}",
        source="No paper: the loop of this toolkit",
        caption=f"{name} from {known} intents to {classes} in six rounds, α = 0.1, with one row read per group.",
        draw=partial(draw, name=name),
        needs=(SETS[name],),
    )


TABLES = (
    _rounds_of("BANKING", 19, 77),
    _rounds_of("CLINC", 38, 150),
    Figure(
        name="open-world-map-banking",
        source="No paper: the loop of this toolkit",
        caption="BANKING after the first sixth of the stream: queued rows by t-SNE; the first twelve groups of "
        "the queue are coloured.",
        draw=draw_map,
        needs=("banking",),
    ),
)
