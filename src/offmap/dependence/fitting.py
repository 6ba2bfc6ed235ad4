"""Fits a network to arrays and values rows that it did not learn from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.optim import Adam

from offmap import parameters
from offmap.dependence.door import FloatArray
from offmap.dependence.summed import TotalCorrelation
from offmap.parameters import Count, Fraction, Positive
from offmap.train import Batches, descend, train

FEWEST = 20


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a network is fitted to arrays.

    Args:
        held_out: Share of the rows not learnt from: half of them stop the training, the other half give the value.
        epochs: Passes over the rows, at the most.
        patience: Passes without progress on held-out rows after which training stops.
        batch_size: Rows a step, and rows valued at a time.
        lr: Step size of Adam.

    Example:
        >>> Training(epochs=50).batch_size
        256
    """

    held_out: Fraction = 0.4
    epochs: Count = 200
    patience: Count = 10
    batch_size: Count = 256
    lr: Positive = 2e-3

    def __post_init__(self) -> None:
        parameters.check(self)


@dataclass(frozen=True)
class Split:
    """Rows to learn from, rows that stop the learning, and rows that give the value; each a list of variables.

    ``places`` are those of the rows that give the value among all.
    """

    learnt: tuple[Tensor, ...]
    stopping: tuple[Tensor, ...]
    valued: tuple[Tensor, ...]
    places: Tensor


def split(variables: Sequence[FloatArray], held_out: float) -> Split:
    """Divides rows at random, by torch's generator."""
    rows = len(variables[0])
    if rows < FEWEST:
        raise ValueError(f"an estimator that is learnt needs at least {FEWEST} rows; got {rows}")
    tensors = [torch.from_numpy(variable).float() for variable in variables]
    half = max(2, round(rows * held_out / 2))
    order = torch.randperm(rows)
    parts = (order[2 * half :], order[half : 2 * half], order[:half])
    learnt, stopping, valued = (tuple(tensor[part] for tensor in tensors) for part in parts)
    return Split(learnt, stopping, valued, places=parts[2])


def fit(model: TotalCorrelation, parts: Split, training: Training) -> None:
    """Trains ``model`` until the loss on the stopping rows falls no more, and leaves it as it was at its best."""
    optimizer = Adam(model.parameters(), lr=training.lr)
    step = descend(optimizer, lambda batch: {"loss": model.loss(batch)})
    stopping = chunks(parts.stopping, training.batch_size)
    train(
        step,
        Batches(parts.learnt, training.batch_size),
        epochs=training.epochs,
        state={"model": model, "optimizer": optimizer},
        validate=lambda: held_out_loss(model, stopping),
        patience=training.patience,
        label="estimating",
    )


def held_out_loss(model: TotalCorrelation, rows: Sequence[Sequence[Tensor]]) -> float:
    """The mean loss over chunks of rows."""
    return float(np.mean([float(model.loss(chunk).detach()) for chunk in rows]))


def valued(model: TotalCorrelation, rows: Sequence[Tensor], batch_size: int) -> FloatArray:
    """What each row adds to the value."""
    with torch.no_grad():
        found = [model.pointwise(chunk) for chunk in chunks(rows, batch_size)]
    return torch.cat(found).double().numpy()


def chunks(rows: Sequence[Tensor], size: int) -> list[tuple[Tensor, ...]]:
    """Rows in order, in chunks of at most ``size`` but no less than 2."""
    count = max(1, min(math.ceil(len(rows[0]) / size), len(rows[0]) // 2))
    return list(zip(*(part.tensor_split(count) for part in rows), strict=True))
