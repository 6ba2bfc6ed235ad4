"""Averages of a network's weights over training."""

import copy
from typing import Generic, TypeVar

import torch
from torch import nn

Network = TypeVar("Network", bound=nn.Module)


class WeightAverage(Generic[Network]):
    r"""An exponential moving average of the weights of a network; its buffers are copied.

    Adversarial training circles its optimum; the averaged weights lie closer to it. Call ``update`` after each
    training step. Step $k$ keeps the share $\min(\text{decay}, k / (k + 9))$ of the average, so that the untrained
    weights of the first steps are forgotten quickly.

    Args:
        network: The network that is trained.
        decay: Largest share of the average that a step keeps.

    Attributes:
        module: The averaged network.

    Example:
        >>> network = nn.Linear(1, 1, bias=False)
        >>> average = WeightAverage(network, decay=0.5)
        >>> average.update()
        >>> torch.equal(average.module.weight, network.weight)
        True
    """

    def __init__(self, network: Network, decay: float) -> None:
        self.module = copy.deepcopy(network).requires_grad_(False)
        self.decay, self._steps = decay, 0
        self._weights = list(zip(self.module.parameters(), network.parameters(), strict=True))
        self._buffers = list(zip(self.module.buffers(), network.buffers(), strict=True))

    @torch.no_grad()
    def update(self) -> None:
        """Moves the average towards the network's weights."""
        self._steps += 1
        moved = 1 - min(self.decay, self._steps / (self._steps + 9))
        for average, weight in self._weights:
            average.lerp_(weight, moved)
        for kept, buffer in self._buffers:
            kept.copy_(buffer)
