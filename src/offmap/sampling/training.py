"""Training of generators: a fixed number of steps at a falling learning rate, with or without a critic."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from offmap.nets import frozen
from offmap.sampling.averaging import WeightAverage
from offmap.sampling.networks import Generator
from offmap.train import Batch, History, train

Losses = dict[str, Tensor]
# Steps per update of the progress bar and per entry of the history.
_STEPS_PER_EPOCH = 50
# The last learning rate, as a share of the first.
_FINAL_LR = 0.02


@dataclass(frozen=True)
class EmptyBatches:
    """Yields ``count`` empty batches per epoch, for steps that draw their own samples."""

    count: int

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Batch]:
        return iter([()] * self.count)


def adam(networks: list[nn.Module], lr: float) -> Optimizer:
    """The papers' Adam: a small first beta, because the objective moves with the other network."""
    weights = [weight for network in networks for weight in network.parameters()]
    return Adam(weights, lr=lr, betas=(0.5, 0.999), fused=True)


def train_steps(step: Callable[[float], Losses], steps: int, state: dict[str, Any], label: str) -> History:
    """Calls ``step`` with the share of the steps that are done, lowering the learning rates along half a cosine.

    Args:
        step: Trains for one step and returns the losses by name.
        steps: Number of steps.
        state: The networks and optimizers that are trained, by name.
        label: Text beside the progress bar.
    """
    optimizers = [part for part in state.values() if isinstance(part, Optimizer)]
    groups = [(group, group["lr"]) for optimizer in optimizers for group in optimizer.param_groups]
    done = 0

    def counted(_: Batch) -> Losses:
        nonlocal done
        progress = done / steps
        done += 1
        factor = _FINAL_LR + (1 - _FINAL_LR) * (1 + math.cos(math.pi * progress)) / 2
        for group, lr in groups:
            group["lr"] = factor * lr
        return step(min(progress, 1.0))

    size = min(_STEPS_PER_EPOCH, steps)
    return train(counted, EmptyBatches(size), epochs=-(-steps // size), state=state, label=label)


@dataclass(frozen=True)
class AdversarialPair:
    """A generator and a critic that are trained in turns.

    Args:
        generator: Draws samples.
        critic: Tells them from other points.
        generator_optimizer: Optimizer of the generator.
        critic_optimizer: Optimizer of the critic.
        update_critic: Trains the critic, given the share of the steps that are done; returns its losses.
        update_generator: Trains the generator, given the same; returns its losses.
    """

    generator: Generator
    critic: nn.Module
    generator_optimizer: Optimizer
    critic_optimizer: Optimizer
    update_critic: Callable[[float], Losses]
    update_generator: Callable[[float], Losses]

    def train(self, steps: int, averaging_decay: float, label: str) -> tuple[Generator, History]:
        """Trains both and returns the generator with averaged weights, and the mean of each loss per epoch."""
        average = WeightAverage(self.generator, averaging_decay)

        def step(progress: float) -> Losses:
            losses = self.update_critic(progress)
            with frozen(self.critic):
                losses |= self.update_generator(progress)
            average.update()
            return losses

        state = {
            "generator": self.generator,
            "critic": self.critic,
            "generator_optimizer": self.generator_optimizer,
            "critic_optimizer": self.critic_optimizer,
        }
        history = train_steps(step, steps, state, label)
        return average.module, history
