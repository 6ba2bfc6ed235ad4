"""The training schedule of the networks of a detector."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer, RMSprop

from offmap.checkpoint import Checkpoint
from offmap.density.vae.negatives import Mutation, Source, UniformNoise
from offmap.density.vae.network import VAE
from offmap.density.vae.objective import Objective
from offmap.density.vae.scores import Networks
from offmap.density.vae.scores.bound import negative_elbo
from offmap.density.vae.steps import StepAndOptimizers, adversarial_step, joint_step
from offmap.parameters import Limit
from offmap.train import Batches, History, Sampler, train

_OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {"adam": Adam, "rmsprop": RMSprop}
OptimizerName = Annotated[str, Limit(f"among {', '.join(map(repr, _OPTIMIZERS))}", _OPTIMIZERS.__contains__)]


@dataclass(frozen=True, kw_only=True)
class TrainingSchedule:
    """How the networks of a detector are trained.

    Args:
        objective: The loss.
        adversarial: Whether encoder and decoder are trained against each other, on negatives the decoder generates.
        epochs: Passes over the rows; None for as many as make ``steps``.
        steps: Gradient steps where ``epochs`` is None.
        patience: Epochs without a better validation bound after which training stops.
        batch_size: Rows per gradient step.
        lr: Learning rate.
        optimizer: Name of the optimiser.
    """

    objective: Objective
    adversarial: bool
    epochs: int | None
    steps: int
    patience: int | None
    batch_size: int
    lr: float
    optimizer: str

    def train(
        self,
        network: VAE,
        training: Tensor | Sampler,
        negatives: Source | None = None,
        *,
        mutate: Source | None = None,
        validation: Tensor | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> History:
        """Trains one network on prepared rows.

        Args:
            network: The network.
            training: Rows to train on, or batches of them.
            negatives: Draws negatives for a batch.
            mutate: Changes the rows of a batch first.
            validation: Rows whose bound decides when to stop, if there is ``patience``.
            checkpoint: File for the state of training.
        """
        step, optimizers = self._step(network, negatives, mutate)
        batches = self._batches(training)
        watched = None if self.patience is None or validation is None or len(validation) == 0 else validation
        return train(
            step,
            batches,
            epochs=self.epochs or math.ceil(self.steps / len(batches)),
            state={"network": network, **optimizers},
            validate=None if watched is None else partial(mean_negative_elbo, network, watched),
            patience=None if watched is None else self.patience,
            checkpoint=checkpoint,
            label="VAE",
        )

    def train_others(
        self,
        networks: Networks,
        training: Tensor | Sampler,
        negatives: Source | None,
        validation: Tensor,
        mutation: float,
    ) -> History:
        """Trains the further networks that some scores need; the history names each term after its network.

        Args:
            networks: The networks, of which the first is trained already.
            training: Rows to train on, or batches of them.
            negatives: Draws negatives for a batch.
            validation: Rows whose bound decides when to stop.
            mutation: Share of the values that is replaced in the rows of the background model.
        """
        others = {f"network {place}": network for place, network in enumerate(networks.ensemble, start=2)}
        histories = {
            name: self.train(network, training, negatives, validation=validation) for name, network in others.items()
        }
        if networks.background is not None:
            mutate = Mutation(UniformNoise.like(training if isinstance(training, Tensor) else validation), mutation)
            mutated = mutate(validation)
            histories["background"] = self.train(networks.background, training, mutate=mutate, validation=mutated)
        return {f"{name} {term}": values for name, history in histories.items() for term, values in history.items()}

    def _step(self, network: VAE, negatives: Source | None, mutate: Source | None) -> StepAndOptimizers:
        """The training step; a background model is never trained adversarially."""
        make = partial(_OPTIMIZERS[self.optimizer], lr=self.lr)
        if self.adversarial and mutate is None:
            return adversarial_step(network, self.objective, make)
        return joint_step(network, self.objective, make, negatives=negatives, mutate=mutate)

    def _batches(self, training: Tensor | Sampler) -> Sampler:
        """Where ``epochs`` is None, repeats few rows: the validation after each epoch costs as much as a step."""
        if not isinstance(training, Tensor):
            return training
        if self.epochs is None and training.ndim == 2:
            training = training.repeat(math.ceil(_FEWEST_BATCHES * self.batch_size / len(training)), 1)
        return Batches((training,), self.batch_size)


def mean_negative_elbo(network: VAE, X: Tensor) -> float:
    """The mean of −ELBO over prepared rows, in nats."""
    return float(torch.cat([negative_elbo(network, rows) for rows in X.split(1024)]).mean())


_FEWEST_BATCHES = 20
