"""How the networks of a detector are trained, one call a network."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer, RMSprop

from offmap.checkpoint import Checkpoint
from offmap.density.negatives import Mutation, Source, Uniform
from offmap.density.objectives import Objective
from offmap.density.players import Made, one_player, two_players
from offmap.density.scores import Models
from offmap.density.scores.bound import negative_elbo
from offmap.density.vae import VAE
from offmap.train import Batches, History, train


@dataclass(frozen=True, kw_only=True)
class Regimen:
    """What the training of all networks of a detector has in common.

    Args:
        objective: What they descend.
        mutation: Share of the values drawn at random in the rows of a background model.
        generated: Whether encoder and decoder are two players, of which one generates the other's negatives.
        epochs: Passes over the rows, if not as many as make ``steps``.
        steps: Steps to make where ``epochs`` is open.
        patience: Epochs without a better bound after which training stops.
        batch_size: Rows a step.
        lr: Step size.
        optimizer: Name of the optimiser.
    """

    objective: Objective
    mutation: float
    generated: bool
    epochs: int | None
    steps: int
    patience: int | None
    batch_size: int
    lr: float
    optimizer: Literal["adam", "rmsprop"]

    def train(
        self,
        network: VAE,
        training: Tensor,
        source: Source | None = None,
        *,
        mutate: Source | None = None,
        watched: Tensor | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> History:
        """Trains one network on prepared rows.

        Args:
            network: The network.
            training: Rows to learn from.
            source: Where negatives come from.
            mutate: What is done to the rows first.
            watched: Rows whose bound says when to stop, where there is ``patience``.
            checkpoint: Where to leave the state of training.
        """
        step, optimizers = self._step(network, source, mutate)
        rows = self._often_enough(training)
        watch = None if self.patience is None or watched is None or len(watched) == 0 else watched
        return train(
            step,
            Batches((rows,), self.batch_size),
            epochs=self.epochs or math.ceil(self.steps / math.ceil(len(rows) / self.batch_size)),
            state={"network": network, **optimizers},
            validate=None if watch is None else partial(mean_bound, network, watch),
            patience=None if watch is None else self.patience,
            checkpoint=checkpoint,
            label="VAE",
        )

    def train_others(self, models: Models, training: Tensor, source: Source | None, watched: Tensor) -> History:
        """Trains the networks that only some scores ask for; each term of the history is named after its network."""
        others = {f"network {place}": network for place, network in enumerate(models.ensemble, start=2)}
        histories = {name: self.train(network, training, source, watched=watched) for name, network in others.items()}
        if models.background is not None:
            mutate = Mutation(Uniform.like(training), self.mutation)
            histories["background"] = self.train(models.background, training, mutate=mutate, watched=mutate(watched))
        return {f"{name} {term}": values for name, history in histories.items() for term, values in history.items()}

    def _step(self, network: VAE, source: Source | None, mutate: Source | None) -> Made:
        """What is done with a batch; a model of mutated rows is no player, whatever the negatives are."""
        make = partial(_OPTIMIZERS[self.optimizer], lr=self.lr)
        if self.generated and mutate is None:
            return two_players(network, self.objective, make)
        return one_player(network, self.objective, make, source=source, mutate=mutate)

    def _often_enough(self, training: Tensor) -> Tensor:
        """By default an epoch of few rows goes over them several times: a look at the bound costs as much as a step."""
        if self.epochs is not None or training.ndim > 2:
            return training
        return training.repeat(math.ceil(_FEWEST_BATCHES * self.batch_size / len(training)), 1)


def mean_bound(network: VAE, X: Tensor) -> float:
    """The mean of −ELBO over prepared rows, in nats."""
    return float(torch.cat([negative_elbo(network, rows) for rows in X.split(1024)]).mean())


_FEWEST_BATCHES = 20
_OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {"adam": Adam, "rmsprop": RMSprop}
