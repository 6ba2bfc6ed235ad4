"""How fast images are scored: by the score "texture", by its forward passes alone, and by PyOD's autoencoder."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from offmap.arrays import chunk_size, to_tensor
from offmap.data import uniform_noise
from offmap.density import VAEDetector
from offmap_bench.rivals import rival
from offmap_bench.table import Table
from offmap_bench.tables.speed import SOURCE, take_turns
from offmap_bench.timing import threads


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """Images that the contenders score in turn.

    Args:
        rows: Images per turn.
        side: Pixels of a side.
        turns: Turns of each contender.
    """

    rows: int = 2048
    side: int = 28
    turns: int = 7


def contenders(workload: Scoring, seed: int) -> dict[str, Callable[[], object]]:
    """The score "texture", its forward passes alone, and PyOD's VAE on the same images."""
    images = uniform_noise(workload.rows, (workload.side, workload.side), seed)
    ours = VAEDetector(novelty_score="texture", epochs=1, random_state=seed).fit(images)
    network, size = ours.network_, chunk_size((workload.side**2,))
    chunks = to_tensor(images[..., None], "cpu").split(size)

    def passes() -> None:
        with torch.inference_mode():
            for chunk in chunks:
                network.reconstruct(chunk)

    flat = images.reshape(len(images), -1) / 255.0
    rival = pyod_vae().fit(flat[:512])
    return {
        "ours": lambda: ours.novelty(images),
        "limit": passes,
        "PyOD": lambda: rival.decision_function(flat),
    }


def pyod_vae() -> Any:
    """PyOD's VAE, trained for one epoch: only its scoring is timed."""
    return rival("pyod.models.vae", "PyOD").VAE(epoch_num=1, verbose=0)


def measure(workload: Scoring, column: str, seed: int) -> dict[str, float]:
    """Images per second of each contender, and ours as a multiple of the limit."""
    with threads(int(column.split()[0])):
        seconds = take_turns(contenders(workload, seed), workload.turns)
    rates = {name: workload.rows / statistics.median(times) for name, times in seconds.items()}
    pairs = zip(seconds["limit"], seconds["ours"], strict=True)
    return rates | {"ours / limit": float(np.median([limit / own for limit, own in pairs]))}


IMAGES = Table(
    name="speed-scoring-images",
    source=SOURCE,
    caption="Images of 28×28 scored per second by the score texture of a VAE.",
    rows={"28×28": Scoring()},
    columns=("1 thread", "2 threads"),
    metrics=("ours", "limit", "PyOD", "ours / limit"),
    measure=measure,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"ours": ",.0f", "limit": ",.0f", "PyOD": ",.0f"},
    notes="The limit is one pass of encoder and decoder over the same chunks, already in memory as floats, with "
    "nothing made of it, all threads on one chunk; ours has one chunk per thread. PyOD's VAE is a perceptron at its "
    "defaults; it draws latent vectors while scoring, so that its scores differ from call to call. All take turns in "
    "one process; medians over the turns.",
)
TABLES = (IMAGES,)
