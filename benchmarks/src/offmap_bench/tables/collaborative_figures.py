"""Pictures of collaborative anomaly detection: which tasks are alike, and how fast a new one is learnt."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray
from scipy.stats import spearmanr

from offmap.collaborative import RatioDetector
from offmap.files import replacing
from offmap_bench.cold_start import EXPOSURES
from offmap_bench.figure import Figure
from offmap_bench.image_tasks import active_classes, exposed_tasks, images
from offmap_bench.run import run
from offmap_bench.tables.collaborative_images import CONCAT, CPU, SOURCE
from offmap_bench.tables.collaborative_stream import TABLES as STREAM_TABLES

SEED_TASKS = (252, 64, 10)
FIRST_UNSEEN = 1000
COLD = STREAM_TABLES[0]
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
LINES = {"seen": "-", "unseen": "--"}


def cosines(vectors: NDArray[Any]) -> NDArray[Any]:
    """The cosine between each two rows, seen from the mean of all."""
    centred = vectors - vectors.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    return unit @ unit.T


def unseen_embeddings(profile: str, seed: int = 0) -> NDArray[Any]:
    """Embeddings of the 120 tasks with three active classes, from a model of all 252 tasks with five."""
    data, rng = images("cifar10"), np.random.default_rng(seed)
    settings = CONCAT | (dict(CPU) if profile == "cpu" else {})
    detector = RatioDetector(embedding="learned", seed_entities=SEED_TASKS[0], random_state=seed, **settings)
    detector.fit(data.X, exposed_tasks(data.y, active_classes(5), rng))
    detector.partial_fit(data.X, FIRST_UNSEEN + exposed_tasks(data.y, active_classes(3), rng))
    return detector.entity_embeddings_[detector.entity_ids_ >= FIRST_UNSEEN]


def draw_similarity(path: Path, profile: str) -> None:
    """Overlap of active classes beside the cosines of embeddings from 252, 64 and 10 seed tasks."""
    active = active_classes(3).astype(float)
    truth, vectors = active @ active.T, unseen_embeddings(profile)
    order = np.random.default_rng(0).permutation(vectors.shape[1])
    panels = {"truth\nclasses in common": truth}
    above = np.triu_indices(len(truth), 1)
    for count in SEED_TASKS:
        found = cosines(vectors[:, order[:count]])
        rank = spearmanr(found[above], truth[above]).statistic
        panels[f"{count} seed tasks\nrank correlation {rank:.2f}"] = found
    drawing = Drawing(figsize=(14, 3.4), layout="constrained")
    for axes, (title, values) in zip(drawing.subplots(1, 4), panels.items(), strict=True):
        shown = axes.imshow(values, cmap="viridis")
        axes.set_title(title, fontsize=10)
        axes.set(xlabel="task", ylabel="task")
        drawing.colorbar(shown, ax=axes, shrink=0.8, label="classes" if values is truth else "cosine")
    with replacing(path) as fresh:
        drawing.savefig(fresh, dpi=130)


def draw_cold_start(path: Path, profile: str) -> None:
    """AUROC against the number of exposures: one colour per method, dashed for tasks that were added afterwards."""
    cells = {(cell.row, cell.column): cell for cell in run(COLD, profile)}
    drawing = Drawing(figsize=(10, 4.8), layout="constrained")
    for axes, column in zip(drawing.subplots(1, 2), COLD.columns, strict=True):
        for (row, colour), (kind, line) in product(zip(COLD.rows, COLOURS, strict=True), LINES.items()):
            runs = cells[row, column].runs
            heights = [100 * np.mean([one.metrics[f"{kind}, {count}"] for one in runs]) for count in EXPOSURES]
            axes.plot(EXPOSURES, heights, f"o{line}", color=colour, label=f"{row}, {kind}", markersize=4)
        axes.set(title=column, xscale="log", xlabel="exposures of the task", ylabel="AUROC, %", xticks=EXPOSURES)
        axes.set_xticks(EXPOSURES, labels=map(str, EXPOSURES))
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    drawing.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    with replacing(path) as fresh:
        drawing.savefig(fresh, dpi=130)


TABLES = (
    Figure(
        name="collaborative-similarity",
        source=f"{SOURCE}, figure 3",
        caption="How alike 120 tasks are that were never trained: classes in common, and cosines of embeddings that a "
        "model of 252 other tasks on CIFAR-10 gives them, and of parts of these embeddings.",
        draw=draw_similarity,
        needs=("cifar10",),
    ),
    Figure(
        name="collaborative-cold-start-figure",
        source=COLD.source,
        caption="AUROC of tasks with few exposures, trained with the others (seen) or added afterwards (unseen).",
        draw=draw_cold_start,
        needs=COLD.needs,
    ),
)
