"""Multi-layer perceptrons."""

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from offmap.nets.steady import Linear


def mlp(widths: Sequence[int], dropout: float = 0.0) -> nn.Sequential:
    """Linear layers of the given widths with a ReLU, and dropout if asked, after each but the last.

    Example:
        >>> mlp([4, 8, 2])
        Sequential(
          (0): Linear(in_features=4, out_features=8, bias=True)
          (1): ReLU()
          (2): Linear(in_features=8, out_features=2, bias=True)
        )
    """
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [Linear(inputs, outputs), nn.ReLU()]
        layers += [nn.Dropout(dropout)] if dropout else []
    return nn.Sequential(*layers[: -2 if dropout else -1])
