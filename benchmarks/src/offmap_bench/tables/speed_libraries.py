"""How fast a variational autoencoder is fitted and scores rows, compared with other libraries."""

import logging
import os
import statistics
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from offmap.density import VAEDetector
from offmap_bench.rivals import rival
from offmap_bench.table import Table
from offmap_bench.tables.speed import SOURCE, take_turns
from offmap_bench.timing import threads

FIT, SCORE = COLUMNS = ("fit", "score")
LIBRARIES = ("Offmap", "PyOD", "pythae")
Rows = NDArray[np.float32]
Contenders = Mapping[str, Callable[[], object]]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Rows that each library is fitted on, or scores.

    Args:
        fitted: Rows to fit.
        scored: Rows to score.
        width: Numbers in a row.
        hidden: Width of the one hidden layer on either side.
        latent_dim: Latent dimensions.
        epochs: Passes over the rows.
        batch_size: Rows per gradient step.
        turns: Turns of each library.
    """

    fitted: int = 8192
    scored: int = 1024
    width: int = 784
    hidden: int = 512
    latent_dim: int = 10
    epochs: int = 2
    batch_size: int = 128
    turns: int = 5

    def rows(self, count: int, seed: int) -> Rows:
        """Rows of numbers in [0, 1]."""
        return np.random.default_rng(seed).random((count, self.width), dtype=np.float32)

    def ours(self, seed: int) -> VAEDetector:
        """Our detector, with the score that is closest to theirs."""
        return VAEDetector(
            likelihood="bernoulli",
            novelty_score="elbo",
            hidden=(self.hidden,),
            latent_dim=self.latent_dim,
            epochs=self.epochs,
            batch_size=self.batch_size,
            random_state=seed,
        )

    def pyod(self, seed: int) -> Any:
        """PyOD's detector with the same layers."""
        layers = {
            "encoder_neuron_list": [self.hidden],
            "decoder_neuron_list": [self.hidden],
            "latent_dim": self.latent_dim,
        }
        rest: dict[str, Any] = {"dropout_rate": 0.0, "random_state": seed, "verbose": 0}
        return rival("pyod.models.vae", "PyOD").VAE(epoch_num=self.epochs, batch_size=self.batch_size, **layers, **rest)

    def pythae(self) -> Any:
        """pythae's model, whose layers are these by default."""
        models = rival("pythae.models", "pythae")
        return models.VAE(
            models.VAEConfig(input_dim=(self.width,), latent_dim=self.latent_dim, reconstruction_loss="bce")
        )


def train_pythae(workload: Workload, X: Rows, seed: int, folder: Path) -> Any:
    """Fits pythae's model with its own trainer, which keeps its files in ``folder``."""
    model, trainers = workload.pythae(), rival("pythae.trainers", "pythae")
    logging.getLogger("pythae").setLevel(logging.WARNING)
    data = rival("pythae.data.datasets", "pythae").BaseDataset(torch.from_numpy(X), torch.zeros(len(X)))
    config = trainers.BaseTrainerConfig(
        output_dir=str(folder),
        num_epochs=workload.epochs,
        per_device_train_batch_size=workload.batch_size,
        no_cuda=True,
        seed=seed,
    )
    # It says on the terminal what it does at each step.
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        trainers.BaseTrainer(model, data, training_config=config).train(log_output_dir=None)
    return model.eval()


def fitting(workload: Workload, seed: int, folder: Path) -> Contenders:
    """Each library's whole fit."""
    X = workload.rows(workload.fitted, seed)
    return {
        "Offmap": lambda: workload.ours(seed).fit(X),
        "PyOD": lambda: workload.pyod(seed).fit(X),
        "pythae": lambda: train_pythae(workload, X, seed, folder),
    }


def scoring(workload: Workload, seed: int) -> Contenders:
    """Each library's score of rows it was not fitted on."""
    taught, X = workload.rows(1024, seed), workload.rows(workload.scored, seed + 1)
    ours, pyod = workload.ours(seed).fit(taught), workload.pyod(seed).fit(taught)
    pythae, tensor = workload.pythae().eval(), torch.from_numpy(X)
    return {
        "Offmap": lambda: ours.novelty(X),
        "PyOD": lambda: pyod.decision_function(X),
        "pythae": lambda: pythae.get_nll(tensor, n_samples=1, batch_size=1),
    }


def measure(workload: Workload, column: str, seed: int) -> dict[str, float]:
    """Rows per second: over all epochs of a fit, or when scored."""
    with threads(1), TemporaryDirectory() as folder:
        contenders = fitting(workload, seed, Path(folder)) if column == FIT else scoring(workload, seed)
        seconds = take_turns(contenders, workload.turns)
    rows = workload.fitted * workload.epochs if column == FIT else workload.scored
    return {name: rows / statistics.median(seconds[name]) for name in LIBRARIES}


TABLES = (
    Table(
        name="speed-libraries",
        source=SOURCE,
        caption="Rows of 784 numbers per second in a fit, and when scored: libraries with a variational autoencoder.",
        rows={"784-512-10": Workload()},
        columns=COLUMNS,
        metrics=LIBRARIES,
        measure=measure,
        seeds={"cpu": range(3)},
        profiles={"cpu": {}},
        formats=dict.fromkeys(LIBRARIES, ",.0f"),
        notes="The same layers for all, one thread, batches of 128 rows, 2 epochs of 8,192 rows; all take turns in one "
        "process. A fit is the call a user makes, with all that the library does in it: ours keeps rows aside for the "
        "threshold, PyOD scores its training rows, pythae writes its model to disk. Scores are the bound on the "
        "likelihood (ours), the reconstruction error with a draw of the latent vector (PyOD), and the likelihood of "
        "one row after another by one importance sample (pythae, which returns only their mean).",
    ),
)
