"""Fits networks to arrays and evaluates them on held-out rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.optim import Adam

from offmap import parameters
from offmap.dependence.estimator import BatchSize, Estimator
from offmap.dependence.total_correlation_module import TotalCorrelation
from offmap.dependence.validation import FloatArray
from offmap.parameters import Count, Fraction, Positive
from offmap.train import Batch, Batches, descend, train

FEWEST_ROWS = 20


@dataclass(frozen=True, kw_only=True)
class Training:
    """How networks are fitted to arrays.

    Args:
        held_out: Share of the rows that are not trained on. One half of them decides when to stop, the other half
            gives the value.
        epochs: Largest number of passes over the training rows.
        patience: Passes without improvement on held-out rows after which training stops.
        batch_size: Rows per step, and rows evaluated at a time.
        lr: Learning rate of Adam.
        stack_terms: Whether ``estimator="auto"`` trains the networks of all terms of a total correlation as one stack.
            An epoch then takes about half the time, but training lasts until the slowest term has converged.

    Example:
        >>> Training(epochs=50).batch_size
        256
    """

    held_out: Fraction = 0.4
    epochs: Count = 200
    patience: Count = 10
    batch_size: BatchSize = 256
    lr: Positive = 2e-3
    stack_terms: bool = False

    def __post_init__(self) -> None:
        parameters.check(self)


@dataclass(frozen=True)
class Split:
    """Rows divided at random; each part is a tuple with one tensor per variable.

    Attributes:
        training: Rows to train on.
        stopping: Rows that decide when training stops.
        evaluation: Rows that give the value.
        evaluation_rows: Positions of the evaluation rows among all rows.
    """

    training: Batch
    stopping: Batch
    evaluation: Batch
    evaluation_rows: Tensor


def split(variables: Sequence[FloatArray], held_out: float) -> Split:
    """Divides rows at random, with torch's global generator."""
    rows = len(variables[0])
    if rows < FEWEST_ROWS:
        raise ValueError(f"an estimator with a network needs at least {FEWEST_ROWS} rows; got {rows}")
    tensors = [torch.from_numpy(variable).float() for variable in variables]
    half = max(2, round(rows * held_out / 2))
    if rows - 2 * half < 2:
        raise ValueError(f"held_out must leave at least 2 of {rows} rows to train on; lower it from {held_out}")
    order = torch.randperm(rows)
    parts = (order[2 * half :], order[half : 2 * half], order[:half])
    training, stopping, evaluation = (tuple(tensor[part] for tensor in tensors) for part in parts)
    return Split(training, stopping, evaluation, evaluation_rows=parts[2])


def fit(model: TotalCorrelation, parts: Split, training: Training) -> None:
    """Trains ``model`` until its loss on the stopping rows no longer falls, and restores the best epoch."""
    optimizer = Adam(model.parameters(), lr=training.lr)
    stopping = chunks(parts.stopping, training.batch_size)
    train(
        descend(optimizer, lambda batch: {"loss": model.loss(batch)}),
        Batches(parts.training, training.batch_size),
        epochs=training.epochs,
        state={"model": model, "optimizer": optimizer},
        validate=lambda: float(np.mean([float(model.loss(chunk)) for chunk in stopping])),
        patience=training.patience,
        label="estimating",
    )


def fit_stack(model: Estimator, parts: Split, training: Training) -> None:
    """Trains a stack of estimators until no term improves on the stopping rows; each term keeps its own best epoch.

    The rows of both variables are ``(n, terms, widest)``.
    """
    optimizer = Adam(model.parameters(), lr=training.lr)
    best, stopping = _BestPerTerm(model), chunks(parts.stopping, training.batch_size)
    train(
        descend(optimizer, lambda batch: {"loss": model.loss(*terms_first(batch))}),
        Batches(parts.training, training.batch_size),
        epochs=training.epochs,
        state={"model": model, "optimizer": optimizer},
        validate=lambda: best.update(torch.stack([model.losses(*terms_first(chunk)) for chunk in stopping]).mean(0)),
        patience=training.patience,
        label="estimating",
    )
    best.restore()


class _BestPerTerm:
    """Keeps the parameters of the epoch with the lowest held-out loss, for each term of a stack separately."""

    def __init__(self, model: Estimator) -> None:
        self.model, self.improvements = model, 0
        self.lowest = torch.full((len(model.x_widths),), torch.inf)
        self.parameters = {name: value.detach().clone() for name, value in model.named_parameters()}

    def update(self, losses: Tensor) -> float:
        """Takes the loss of each term; the returned number falls whenever a term has improved."""
        better = losses < self.lowest
        self.lowest = torch.where(better, losses, self.lowest)
        for name, value in self.model.named_parameters():
            self.parameters[name][better] = value.detach()[better]
        self.improvements += bool(better.any())
        return -float(self.improvements)

    @torch.no_grad()
    def restore(self) -> None:
        for name, value in self.model.named_parameters():
            value.copy_(self.parameters[name])


@torch.no_grad()
def evaluate(model: TotalCorrelation, rows: Batch, batch_size: int) -> FloatArray:
    """Returns the contribution of each row, ``(n,)``."""
    return torch.cat([model.pointwise(chunk) for chunk in chunks(rows, batch_size)]).double().numpy()


@torch.no_grad()
def evaluate_stack(model: Estimator, rows: Batch, batch_size: int) -> FloatArray:
    """Returns the contribution of each row to each term, ``(terms, n)``."""
    found = [model.pointwise(*terms_first(chunk)) for chunk in chunks(rows, batch_size)]
    return torch.cat(found, dim=1).double().numpy()


def terms_first(batch: Batch) -> Batch:
    """Turns rows ``(n, terms, widest)``, as batches are drawn, into ``(terms, n, widest)``, as stacks take them.

    Columns are contiguous in memory, as those of ``TotalCorrelation.pairs``, so that products round in the same way.
    """
    return tuple(rows.permute(1, 2, 0).contiguous().mT for rows in batch)


def chunks(rows: Batch, size: int) -> list[Batch]:
    """Splits rows in order into chunks of about equal size: at most ``size`` rows, at least 2."""
    count = max(1, min(math.ceil(len(rows[0]) / size), len(rows[0]) // 2))
    return list(zip(*(part.tensor_split(count) for part in rows), strict=True))
