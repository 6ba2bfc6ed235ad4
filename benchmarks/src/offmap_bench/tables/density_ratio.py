"""The figure of the guide to density ratios: two densities, and the logarithm of their ratio as a network learns it."""

from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray
from scipy.stats import norm
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from offmap.files import replacing
from offmap.nets import mlp
from offmap.random_state import local_seed
from offmap.ratio import ratio_loss
from offmap.train import Batch, Batches, descend, train
from offmap_bench.figure import Figure

COLOURS = ("#0072b2", "#d55e00")
GRID = np.linspace(-6, 6, 241)
ROWS = 4000


def densities(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A density with two modes, and a wider one."""
    return 0.5 * norm.pdf(x, -1.5, 0.6) + 0.5 * norm.pdf(x, 1.5, 0.6), norm.pdf(x, 0, 2)


def samples() -> tuple[Tensor, Tensor]:
    """Rows of both densities."""
    rng = np.random.default_rng(0)
    p = rng.choice([-1.5, 1.5], ROWS) + 0.6 * rng.normal(size=ROWS)
    q = 2 * rng.normal(size=ROWS)
    return torch.from_numpy(p[:, None]).float(), torch.from_numpy(q[:, None]).float()


def learned_ratio(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The log ratio at ``x`` by a network that tells rows of the one density from rows of the other."""
    with local_seed(0):
        network = mlp([1, 64, 64, 1])
        optimizer = Adam(network.parameters(), lr=3e-3)

        def loss(batch: Batch) -> dict[str, Tensor]:
            return {"ratio": ratio_loss(*map(network, batch))}

        state: dict[str, nn.Module | Optimizer] = {"network": network, "optimizer": optimizer}
        train(descend(optimizer, loss), Batches(samples(), 256), epochs=40, state=state)
    with torch.no_grad():
        return network(torch.from_numpy(x[:, None]).float()).squeeze(1).double().numpy()


def draw(path: Path, profile: str) -> None:
    """Densities on the left, the true and the learned log ratio on the right."""
    p, q = densities(GRID)
    drawing = Drawing(figsize=(8.4, 3.2), layout="constrained")
    left, right = drawing.subplots(1, 2)
    for values, name, colour in zip((p, q), ("p", "q"), COLOURS, strict=True):
        left.fill_between(GRID, values, alpha=0.25, color=colour)
        left.plot(GRID, values, color=colour, label=name)
    left.set(xlabel="x", ylabel="density", title="two densities")
    right.plot(GRID, np.log(p / q), color="black", linestyle="--", label="log p / q")
    right.plot(GRID, learned_ratio(GRID), color=COLOURS[0], label="learned f")
    right.axhline(0, color="grey", linewidth=0.6)
    right.set(xlabel="x", ylim=(-7, 2.5), title="their log ratio")
    for axes in (left, right):
        axes.legend(loc="upper right", frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    with replacing(path) as fresh:
        drawing.savefig(fresh, dpi=150)


TABLES = (
    Figure(
        name="density-ratio",
        source="Offmap, guide to density ratios",
        caption="Two densities, and the logarithm of their ratio as a classifier of their samples learns it.",
        draw=draw,
    ),
)
