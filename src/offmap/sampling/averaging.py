"""A copy of a network whose weights are the running mean of the weights it passes through in training."""

import copy
from typing import Generic, TypeVar

import torch
from torch import nn

Network = TypeVar("Network", bound=nn.Module)


class Average(Generic[Network]):
    """Follows a network that is being trained; adversarial training circles its goal, and the mean lies nearer to it.

    Args:
        network: What is trained.
        decay: Share of the past in the mean; less in the first steps, whose weights are soon of no worth.

    Example:
        >>> average = Average(nn.Linear(1, 1, bias=False), decay=0.5)
        >>> average.update()
    """

    def __init__(self, network: Network, decay: float) -> None:
        self.network = network
        self.mean: Network = copy.deepcopy(network)
        self.mean.requires_grad_(False)
        self.decay = decay
        self.seen = 0

    def update(self) -> None:
        """Takes the present weights into the mean."""
        self.seen += 1
        weight = 1 - min(self.decay, self.seen / (self.seen + 9))
        with torch.no_grad():
            torch._foreach_lerp_([*self.mean.parameters()], [*self.network.parameters()], weight)
