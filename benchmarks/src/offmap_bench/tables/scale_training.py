"""Training on two processes beside one, each of one thread."""

import statistics
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import torch
from torch.optim import Adam

from offmap.density.vae.network import VAE
from offmap.density.vae.objective import Objective
from offmap.distributed import together
from offmap.random_state import local_seed
from offmap.train import Batches, descend, train
from offmap_bench.table import Table


@dataclass(frozen=True, kw_only=True)
class SharedTraining:
    """A variational autoencoder of images that one process trains, then two of them together, turn by turn.

    Args:
        batches: Batches per epoch.
        epochs: Epochs per turn.
        turns: How often each contender has its turn.
    """

    batches: int = 8
    epochs: int = 2
    turns: int = 7


def train_share(workload: SharedTraining, batch_size: int, seed: int, address: str) -> float:
    """Rows per second of the group of processes that meet at ``address``; an epoch before warms up."""
    torch.set_num_threads(1)
    with together(address), local_seed(seed):
        X = torch.rand(workload.batches * batch_size, 1, 28, 28)
        network = VAE((1, 28, 28), latent_dim=10, hidden=(), likelihood="bernoulli", network="conv")
        optimizer, objective = Adam(network.parameters(), lr=1e-3), Objective()
        step = descend(optimizer, lambda batch: objective.terms(network, batch[0]))
        batches = Batches((X.contiguous(memory_format=torch.channels_last),), batch_size)
        train(step, batches, epochs=1, state={"network": network, "optimizer": optimizer})
        start = perf_counter()
        train(step, batches, epochs=workload.epochs, state={"network": network, "optimizer": optimizer})
        return workload.epochs * len(X) / (perf_counter() - start)


def measure_processes(workload: SharedTraining, column: str, seed: int) -> dict[str, float]:
    """Rows per second of one and of two processes, by the medians over the turns; the ratios are paired."""
    batch_size = int(column.split()[-1])
    rates: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for turn in range(workload.turns):
            for count in sorted(rates, reverse=turn % 2 == 1):
                meeting = f"file://{Path(folder)}/{turn}-{count}?world_size={count}&rank="
                started = [
                    pool.submit(train_share, workload, batch_size, seed, f"{meeting}{rank}") for rank in range(count)
                ]
                rates[count].append(min(each.result() for each in started))
    ratio = statistics.median(two / one for one, two in zip(rates[1], rates[2], strict=True))
    return {
        "one process": statistics.median(rates[1]),
        "two processes": statistics.median(rates[2]),
        "two / one": ratio,
    }


TABLES = (
    Table(
        name="scale-training",
        source="No paper: the speed of this toolkit",
        caption="Training rows per second of a VAE of 28×28 images on one process and on two, of one thread each.",
        rows={"convolutions, 28×28": SharedTraining()},
        columns=("batches of 128", "batches of 512"),
        metrics=("one process", "two processes", "two / one"),
        measure=measure_processes,
        seeds={"cpu": range(3)},
        profiles={"cpu": {}},
        formats={"one process": ",.0f", "two processes": ",.0f", "two / one": ".2f"},
        notes="The batch is that of both processes together, each of which takes half of it; gradients are averaged by "
        "gloo on the same machine. Both train the same network on the same rows, in turns. Medians over the turns, "
        "and the median of the turns' ratios.",
    ),
)
