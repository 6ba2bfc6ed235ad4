"""Densities that no setting was chosen on: random mixtures on boxes, and rings of modes with random weights."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch

from offmap.sampling import RAS
from offmap_bench.plain_samplers import ImportanceResampling, Metropolis
from offmap_bench.random_densities import random_box, random_ring
from offmap_bench.sample_quality import modes_found, weight_error
from offmap_bench.table import Table

SOURCE = "No table of the chapter: whether the defaults serve densities that they were not chosen on"
# Betas per mixture and dimensions. Every seed has its own density, of a number below 12.
BOXES = {"one Beta": (1, 1), "two Betas": (2, 1), "three Betas": (3, 1), "two Betas in 2-D": (2, 2)}
SAMPLES = 100_000


def timed(draw: Callable[[], Any]) -> tuple[Any, float]:
    """What ``draw`` returns, and the seconds that it took."""
    start = perf_counter()
    samples = draw()
    return samples, perf_counter() - start


def fit_and_draw(method: RAS, seed: int, **task: Any) -> Any:
    """Fits RAS to the density of ``task`` and draws samples."""
    return method.set_params(random_state=seed, **task).fit().sample(SAMPLES, random_state=seed)


def box_number(column: str, seed: int) -> int:
    """A number for every column and seed, from which the box is drawn."""
    return len(BOXES) * seed + [*BOXES].index(column)


def measure_box(method: Any, column: str, seed: int) -> dict[str, float]:
    """The largest distance between the marginal distribution functions, and the seconds of fit and draw."""
    box = random_box(box_number(column, seed), *BOXES[column])
    if isinstance(method, RAS):
        task = {"log_density": box.log_u, "dim": box.dim, "support": box.support}
        samples, seconds = timed(lambda: fit_and_draw(method, seed, **task))
    else:
        window = [torch.tensor(bound, dtype=torch.float32) for bound in box.support]
        samples, seconds = timed(lambda: method.draw(box.log_u, *window, SAMPLES, seed))
    return {"KS": box.ks(samples), "seconds": seconds}


def measure_ring(method: Any, column: str, seed: int) -> dict[str, float]:
    """The modes that are found, the error of their weights, and the seconds of fit and draw."""
    ring = random_ring(seed)
    if isinstance(method, RAS):
        task = {"log_density": ring.log_u, "dim": 2, "scale": (ring.high - ring.low) / 4}
        samples, seconds = timed(lambda: fit_and_draw(method, seed, **task))
    else:
        window = [torch.full((2,), bound) for bound in (ring.low, ring.high)]
        samples, seconds = timed(lambda: method.draw(ring.log_u, *window, SAMPLES, seed))
    return {"modes": modes_found(samples, ring), "weight error": weight_error(samples, ring), "seconds": seconds}


ROWS = {
    "RAS": RAS(),
    "RAS, one Gaussian": RAS(components=1),
    "importance resampling": ImportanceResampling(),
    "Metropolis": Metropolis(),
}
RIVALS = (
    "RAS has its defaults; one Gaussian means that neither its noise nor its reference is a mixture, as in the paper, "
    "with as many steps. Importance resampling "
    "keeps 100,000 of 500,000 uniform points; Metropolis has 2,000 chains and burns in for 1,000 steps. Both see the "
    "bounds. Seconds are those of fitting and drawing, on a machine that did other work too. In one or two dimensions "
    "a plain sampler is as good and far quicker: RAS is for many draws, contexts, and gradients through the samples."
)

TABLES = (
    Table(
        name="sampling-random-boxes",
        source=SOURCE,
        caption="Random mixtures of Betas on random boxes: distance between distribution functions, 100,000 samples.",
        rows=ROWS,
        columns=tuple(BOXES),
        metrics=("KS", "seconds"),
        measure=measure_box,
        seeds={"cpu": range(3)},
        profiles={"cpu": {}},
        notes="Every seed has another density in each column, twelve in all. Boxes start between −10 and 10 and are "
        "0.1 to 100 wide; both parameters of each Beta are above 1. Settings were chosen on boxes 100 to 107 and 1000 "
        "to 1007, those of the table are 0 to 11. In two dimensions KS is the larger one of both "
        f"marginals. True samples have a KS of about 0.003. {RIVALS}",
        higher_is_better={"KS": False},
        formats={"KS": ".4f", "seconds": ".1f"},
    ),
    Table(
        name="sampling-random-rings",
        source=SOURCE,
        caption="Six Gaussians on a ring with random weights: modes found, and the error of their weights.",
        rows=ROWS,
        columns=("six modes",),
        metrics=("modes", "weight error", "seconds"),
        measure=measure_ring,
        seeds={"cpu": range(3)},
        profiles={"cpu": {}},
        notes="Every seed has other weights. Radius 3, standard deviation 0.3; settings were chosen on ring 100. The "
        f"weight error is the total variation distance. {RIVALS}",
        higher_is_better={"modes": True, "weight error": False},
        formats={"modes": ".0f", "weight error": ".3f", "seconds": ".1f"},
    ),
)
