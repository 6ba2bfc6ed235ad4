"""How fast the toolkit is beside what it could be: training, starting and scoring."""

import copy
import math
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer
from torch.utils.data import DataLoader, TensorDataset

from offmap.density import VAEDetector
from offmap.density.vae.network import VAE, NetworkKind
from offmap.openset import MSPClassifier
from offmap.random_state import local_seed
from offmap.train import Batch, Batches, descend, train
from offmap_bench.table import Table
from offmap_bench.timing import timed

SOURCE = "No paper: the speed of this toolkit"
SIZES = {"1,000,000 × 20": (1_000_000, 20)}


@dataclass(frozen=True, kw_only=True)
class Training:
    """A variational autoencoder that each contender trains for one epoch, turn by turn.

    Args:
        shape: Shape of a row: ``(d,)`` for perceptrons, ``(c, h, w)`` for convolutions.
        batches: Batches an epoch.
        batch_size: Rows a batch.
        turns: How often each contender has its turn.
    """

    shape: tuple[int, ...]
    batches: int
    batch_size: int = 128
    turns: int = 11

    def data(self) -> Tensor:
        """The rows of one epoch."""
        return torch.rand(self.batches * self.batch_size, *self.shape)

    def network(self) -> VAE:
        """The network before training."""
        images = len(self.shape) == 3
        kind: NetworkKind = "conv" if images else "mlp"
        likelihood = "bernoulli" if images else "gaussian"
        network = VAE(self.shape, latent_dim=10, hidden=(256, 128), likelihood=likelihood, network=kind)
        return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload] # not in the stub


class Learner:
    """A copy of the network with an optimiser of its own, and the step that anyone would write by hand."""

    def __init__(self, network: VAE) -> None:
        self.network = copy.deepcopy(network).train()
        self.optimizer = Adam(self.network.parameters(), lr=1e-3)

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """The two terms of the bound."""
        (X,) = batch
        reconstruction, kl = self.network.bound(X, torch.randn(len(X), len(self.network.draw)))
        return {"reconstruction": reconstruction.mean(), "kl": kl.mean()}

    def step(self, X: Tensor) -> Tensor:
        """One step down the sum of the terms."""
        self.optimizer.zero_grad(set_to_none=True)
        terms = self.terms((X,))
        loss = terms["reconstruction"] + terms["kl"]
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def contenders(workload: Training) -> dict[str, Callable[[], object]]:
    """One epoch of the same training, as three functions: ours, a loop over a DataLoader, and steps alone."""
    X, network = workload.data(), workload.network()
    ours, plain, bare = Learner(network), Learner(network), Learner(network)
    descent, batches = descend(ours.optimizer, ours.terms), Batches((X,), workload.batch_size)
    state: dict[str, nn.Module | Optimizer] = {"network": ours.network, "optimizer": ours.optimizer}
    loader = DataLoader(TensorDataset(X), batch_size=workload.batch_size, shuffle=True, num_workers=0)
    batch = X[: workload.batch_size].clone()
    return {
        "ours": lambda: train(descent, batches, epochs=1, state=state),
        "DataLoader": lambda: sum(plain.step(rows).item() for (rows,) in loader),
        "limit": lambda: [bare.step(batch) for _ in range(workload.batches)],
    }


def take_turns(runners: Mapping[str, Callable[[], object]], turns: int) -> dict[str, list[float]]:
    """Seconds of each turn of each runner; whoever went first goes last in the next round."""
    order, seconds = list(runners), defaultdict(list)
    for runner in runners.values():
        runner()
    for _ in range(turns):
        for name in order:
            seconds[name].append(timed(runners[name]))
        order.append(order.pop(0))
    return dict(seconds)


def measure_training(workload: Training, column: str, seed: int) -> dict[str, float]:
    """Rows a second of each contender, and ours as a multiple of the others', by the medians over the turns."""
    with local_seed(seed):
        seconds = take_turns(contenders(workload), workload.turns)
    rows = workload.batches * workload.batch_size
    rates = {name: rows / statistics.median(times) for name, times in seconds.items()}
    # Paired turn by turn: what slows the machine down for a while slows down both.
    ratios = {
        f"ours / {other}": statistics.median(t / o for t, o in zip(seconds[other], seconds["ours"], strict=True))
        for other in ("limit", "DataLoader")
    }
    return rates | ratios


def measure_start(code: str, column: str, seed: int) -> dict[str, float]:
    """The median time of a fresh interpreter that runs ``code``."""

    def start() -> None:
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)

    return {"seconds": statistics.median(take_turns({"start": start}, turns=5)["start"])}


def measure_scoring(method: Any, column: str, seed: int) -> dict[str, float]:
    """Rows a second and memory of ``novelty``, in a process of its own, whose peak is that of the scoring."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
        return process.submit(score_alone, method, *SIZES[column], seed).result()


def score_alone(method: Any, rows: int, features: int, seed: int) -> dict[str, float]:
    """Fits a method to a few rows and scores many; to be called in a fresh process."""
    rng = np.random.default_rng(seed)
    few = rng.standard_normal((2000, features))
    method.set_params(random_state=seed).fit(few, rng.integers(10, size=len(few)))
    method.novelty(few)
    X = np.empty((rows, features))
    rng.standard_normal(out=X)
    before, start = peak_mib(), perf_counter()
    method.novelty(X)
    seconds = perf_counter() - start
    return {"rows / s": rows / seconds, "MiB above the input": peak_mib() - before}


def peak_mib() -> float:
    """The most memory that this process has held so far; not a number where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), math.nan)


TRAINING = Table(
    name="speed-training",
    source=SOURCE,
    caption="Training rows per second of a VAE: our loop, a loop over a DataLoader, and the steps alone.",
    rows={
        "convolutions, 28×28": Training(shape=(1, 28, 28), batches=8),
        "perceptrons, 20 features": Training(shape=(20,), batches=64),
    },
    columns=("batches of 128",),
    metrics=("ours", "DataLoader", "limit", "ours / limit", "ours / DataLoader"),
    measure=measure_training,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"ours": ",.0f", "DataLoader": ",.0f", "limit": ",.0f"},
    notes="All three train the same network with the same optimiser on the same rows and take turns in one run. "
    "`DataLoader` is PyTorch's, over a `TensorDataset`, shuffled, without worker processes; `limit` repeats the step "
    "on one batch that lies in memory. Medians over the turns; the ratios are medians of the turns' ratios.",
)
START = Table(
    name="speed-start",
    source=SOURCE,
    caption="Seconds from the start of the interpreter to the end of the command.",
    rows={
        "python alone": "pass",
        "import offmap": "import offmap",
        "offmap --help": "import sys; from offmap.commands.app import main; sys.argv[1:] = ['--help']; main()",
    },
    columns=("warm",),
    metrics=("seconds",),
    measure=measure_start,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"seconds": ".3f"},
    notes="The median of five starts after one that warms the file cache.",
)
SCORING = Table(
    name="speed-scoring",
    source=SOURCE,
    caption="`novelty` of a million rows of 20 features.",
    rows={"VAE": VAEDetector(novelty_score="nearest", epochs=1), "MSP": MSPClassifier(epochs=1)},
    columns=tuple(SIZES),
    metrics=("rows / s", "MiB above the input"),
    measure=measure_scoring,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"rows / s": ",.0f", "MiB above the input": ",.0f"},
    notes="Each run is a process of its own. Memory is the process's peak (Linux) less the peak before scoring, when "
    "the input was already there.",
)
TABLES = (TRAINING, START, SCORING)
