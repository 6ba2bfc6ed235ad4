"""Averages of a network's weights over training."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel


def weight_average(network: nn.Module, decay: float) -> AveragedModel:
    r"""Makes an exponential moving average of the weights of a network.

    Adversarial training circles its optimum; the averaged weights lie closer to it. Call ``update_parameters`` after
    each training step; ``module`` is the averaged network. Step $k$ keeps the share $\min(\text{decay}, k / (k + 9))$
    of the average, so that the untrained weights of the first steps are forgotten quickly.

    Args:
        network: The network that is trained.
        decay: Largest share of the average that a step keeps.

    Example:
        >>> network = nn.Linear(1, 1, bias=False)
        >>> average = weight_average(network, decay=0.5)
        >>> average.update_parameters(network)
        >>> torch.equal(average.module.weight, network.weight)
        True
    """

    @torch.no_grad()
    def update(averages: Sequence[Tensor], weights: Sequence[Tensor], count: Tensor | int) -> None:
        steps = int(count)
        for average, weight in zip(averages, weights, strict=True):
            average.lerp_(weight, 1 - min(decay, steps / (steps + 9)))

    averaged = AveragedModel(network, multi_avg_fn=update)
    # The first call only copies the weights: afterwards its counter is the number of the training step.
    averaged.update_parameters(network)
    return averaged.requires_grad_(False)
