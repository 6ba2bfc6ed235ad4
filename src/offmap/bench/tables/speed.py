"""How fast the toolkit is beside what it could be: training, starting and scoring."""

import copy
import math
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim import Adam
from torch.utils.data import DataLoader, TensorDataset

from offmap.bench.table import Table
from offmap.density import VAEDetector
from offmap.density.vae import VAE
from offmap.openset import MSPClassifier
from offmap.train import Batch, Batches, descend, train

SOURCE = "Speed of this toolkit"


@dataclass(frozen=True, kw_only=True)
class Training:
    """A network to train for a moment, again and again.

    Args:
        shape: Shape of a row: ``(d,)`` for perceptrons, ``(c, h, w)`` for convolutions.
        batches: Batches an epoch.
        repetitions: How often each contender runs one epoch.
        batch_size: Rows a step.
    """

    shape: tuple[int, ...]
    batches: int
    repetitions: int = 15
    batch_size: int = 128

    @property
    def rows(self) -> int:
        """Rows an epoch."""
        return self.batches * self.batch_size


class Contender:
    """One network with its optimiser; all contenders start from the same weights.

    Args:
        network: Copied.
    """

    def __init__(self, network: VAE) -> None:
        self.network = copy.deepcopy(network).train()
        self.optimizer = Adam(self.network.parameters(), lr=1e-3)

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """The two terms of the bound."""
        (X,) = batch
        reconstruction, kl = self.network.bound(X, torch.randn(len(X), len(self.network.draw)))
        return {"reconstruction": reconstruction.mean(), "kl": kl.mean()}

    def plain_step(self, X: Tensor) -> Tensor:
        """One step as it is written without this toolkit."""
        self.optimizer.zero_grad(set_to_none=True)
        terms = self.terms((X,))
        loss = terms["reconstruction"] + terms["kl"]
        loss.backward()
        self.optimizer.step()
        return loss.detach()
