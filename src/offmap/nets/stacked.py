"""Stacks of linear layers and perceptrons: many small networks of the same depth in one batched product."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class StackedLinear(nn.Module):
    r"""Applies one linear layer per network of a stack, $x_t W_t + b_t$, in one batched product.

    Inputs of unequal width are padded with zeros to the widest. The weights that multiply the padding get no gradient,
    so each layer learns what it would learn alone.

    Args:
        inputs: Input width of each layer.
        outputs: Output width, the same for all layers.
        fan_in: Fan-in that scales the initial weights; by default ``inputs``. Give it when the layer is a part of a
            wider one.
        bias: Whether $b_t$ is added.

    Example:
        >>> StackedLinear([3, 5], 2)(torch.zeros(2, 7, 5)).shape
        torch.Size([2, 7, 2])
    """

    def __init__(
        self, inputs: Sequence[int], outputs: int, fan_in: Sequence[int] | None = None, bias: bool = True
    ) -> None:
        super().__init__()
        limit = torch.tensor(inputs if fan_in is None else fan_in)[:, None, None] ** -0.5
        self.weight = nn.Parameter(limit * torch.empty(len(inputs), max(inputs), outputs).uniform_(-1, 1))
        self.bias = nn.Parameter(limit * torch.empty(len(inputs), 1, outputs).uniform_(-1, 1)) if bias else None

    def forward(self, rows: Tensor) -> Tensor:
        """Maps rows ``(stack, …, width)``, each slice by its own layer."""
        flat = rows.reshape(len(rows), -1, rows.shape[-1])
        mapped = flat @ self.weight if self.bias is None else torch.baddbmm(self.bias, flat, self.weight)
        return mapped.reshape(*rows.shape[:-1], -1)


def stacked_mlp(inputs: Sequence[int], widths: Sequence[int], dropout: float = 0.0) -> nn.Sequential:
    """Stacks one perceptron per entry of ``inputs``: layers of the given ``widths`` with a ReLU between them.

    A share ``dropout`` of each hidden layer is dropped while training.

    Example:
        >>> stacked_mlp([3, 5], [8, 1])(torch.zeros(2, 7, 5)).shape
        torch.Size([2, 7, 1])
    """
    layers: list[nn.Module] = [StackedLinear(inputs, widths[0])]
    for before, after in pairwise(widths):
        layers += [nn.ReLU(), *([nn.Dropout(dropout)] if dropout else []), StackedLinear([before] * len(inputs), after)]
    return nn.Sequential(*layers)
