"""The figures of the chapter on adaptive negative samples: the radius, and where the negatives lie."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from torch import Tensor

from offmap.files import replacing
from offmap.nets.stacked import StackedLinear
from offmap.openset import ANSClassifier
from offmap.openset.negatives import Shell
from offmap_bench.figure import Figure
from offmap_bench.run import run
from offmap_bench.table import Table
from offmap_bench.tables.open_intents import COMPARED, SETS, SOURCE, column, own, setting

# In the scaled space of the heads, two rows of a known class are about 20 apart.
RADII = (5.0, 10.0, 20.0, 40.0, 80.0)
AUTOMATIC = "chosen r of each class"
LINES = ("#0072b2", "#d55e00", "#009e73")

RADIUS = Table(
    name="open-intents-radius",
    source=f"{SOURCE}, figure 3.3",
    caption="ANS with one inner radius for all classes, and with the default one per class; half of the classes known.",
    rows={f"r = {radius:g}": own(ANSClassifier, radius=radius) for radius in RADII} | {AUTOMATIC: own(ANSClassifier)},
    columns=tuple(column(name, 50) for name in SETS),
    metrics=COMPARED.metrics,
    measure=COMPARED.measure,
    seeds={"cpu": range(3), "paper": range(10)},
    profiles={"cpu": {}, "paper": {}},
    needs=COMPARED.needs,
    notes="The thesis draws r from 1 to 256 in BERT's space; ours is in the scaled space of the heads.",
    higher_is_better=COMPARED.higher_is_better,
    formats=COMPARED.formats,
)


def draw_radius(path: Path, profile: str) -> None:
    """Plots accuracy and F1 against the radius, one line per data set; dashed is the default radius of each class."""
    cells = {(cell.row, cell.column): cell for cell in run(RADIUS, profile)}

    def mean(row: str, title: str, metric: str) -> float:
        return 100 * float(np.mean([one.metrics[metric] for one in cells[row, title].runs]))

    drawing = Drawing(figsize=(9, 3.6), layout="constrained")
    for axes, metric, label in zip(drawing.subplots(1, 2), ("accuracy", "f1"), ("accuracy, %", "F1, %"), strict=True):
        for title, colour in zip(RADIUS.columns, LINES, strict=True):
            heights = [mean(f"r = {radius:g}", title, metric) for radius in RADII]
            axes.plot(RADII, heights, "o-", color=colour, label=title)
            axes.axhline(mean(AUTOMATIC, title, metric), color=colour, linestyle="--", linewidth=1)
        axes.set(xscale="log", xlabel="inner radius r (dashed: r of each class)", ylabel=label)
        axes.set_xticks(RADII, [f"{radius:g}" for radius in RADII])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    with replacing(path) as fresh:
        drawing.savefig(fresh, dpi=130)


def second_layer(model: ANSClassifier, head: int, rows: Tensor) -> Tensor:
    """Returns the last hidden layer of one head."""
    layers = [layer for layer in model.network_.heads if isinstance(layer, StackedLinear)]
    for layer in layers[:-1]:
        assert layer.bias is not None
        rows = torch.relu(rows @ layer.weight[head] + layer.bias[head])
    return rows


def groups_of(model: ANSClassifier, head: int, title: str, seed: int = 0) -> dict[str, Tensor]:
    """Returns rows in the space of the heads by their role for one head: own, other known, open, and negatives."""
    X, y, _, X_test, y_test, known = setting(title, seed)
    rng = np.random.default_rng(seed)
    name = model.classes_[head]
    tested = {
        "known, other classes": X_test[np.isin(y_test, known) & (y_test != name)],
        "open": X_test[~np.isin(y_test, known)],
        "known, the head's own class": X_test[y_test == name],
    }
    with torch.no_grad():
        placed = {label: model.network_.space(_some(rows, 500, rng)) for label, rows in tested.items()}
        Z, codes = model.network_.space(torch.from_numpy(X)), torch.from_numpy(np.searchsorted(model.classes_, y))
        shell = Shell.around(Z, codes, len(model.classes_), factor=model.radius_factor, gamma=model.gamma)
        own = codes[codes == head]
        return placed | {"synthetic negatives": Z[codes == head] + shell.offsets(own)}


def _some(rows: NDArray[Any], count: int, rng: np.random.Generator) -> Tensor:
    return torch.from_numpy(rows[rng.permutation(len(rows))[:count]])


def draw_head(axes: Axes, model: ANSClassifier, head: int, groups: dict[str, Tensor]) -> None:
    """Plots a t-SNE map of the groups in the last hidden layer of one head."""
    with torch.no_grad():
        features = torch.cat([second_layer(model, head, rows) for rows in groups.values()]).numpy()
    flat = TSNE(random_state=0, init="pca", perplexity=30).fit_transform(features)
    ends = np.cumsum([len(rows) for rows in groups.values()])
    for label, part in zip(groups, np.split(flat, ends[:-1]), strict=True):
        axes.scatter(part[:, 0], part[:, 1], s=9, color=COLOURS[label], label=label, alpha=0.7, linewidths=0)
    axes.set(title=f"head of {str(model.classes_[head])!r}", xlabel="t-SNE 1", ylabel="t-SNE 2", xticks=[], yticks=[])


def draw_map(path: Path, profile: str) -> None:
    """Draws three heads, each with a map of known rows, open rows and synthetic negatives."""
    title = column("CLINC", 50)
    X, y, *_ = setting(title, seed=0)
    model = COMPARED.method("ANS", profile).set_params(random_state=0).fit(X, y)
    heads = np.random.default_rng(0).choice(len(model.classes_), 3, replace=False)
    drawing = Drawing(figsize=(12, 4.4), layout="constrained")
    panels = drawing.subplots(1, 3)
    for axes, head in zip(panels, heads, strict=True):
        draw_head(axes, model, int(head), groups_of(model, int(head), title))
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, markerscale=2)
    with replacing(path) as fresh:
        drawing.savefig(fresh, dpi=130)


COLOURS = {
    "known, other classes": "#56b4e9",
    "open": "#cc79a7",
    "known, the head's own class": "#0072b2",
    "synthetic negatives": "#e69f00",
}

TABLES = (
    RADIUS,
    Figure(
        name="open-intents-radius-figure",
        source=RADIUS.source,
        caption="Accuracy and F1 of ANS against the inner radius of its shells, half of the classes known.",
        draw=draw_radius,
        needs=RADIUS.needs,
    ),
    Figure(
        name="open-intents-map",
        source=f"{SOURCE}, figure 3.4",
        caption="Test rows of CLINC, half of the classes known, and synthetic negatives, as seen by three heads.",
        draw=draw_map,
        needs=("clinc",),
    ),
)
