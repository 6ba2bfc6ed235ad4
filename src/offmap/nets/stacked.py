"""Linear layers and perceptrons, one for each term of a sum, all of them in one batched product."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class StackedLinear(nn.Module):
    r"""Maps rows $x_t$ of term $t$ to $x_t W_t + b_t$, terms of unequal width padded with zeros to the widest.

    What multiplies the padding gets no gradient, so that each term is the layer it would be alone.

    Args:
        inputs: Width of a row of each term.
        outputs: Width of the result, the same for all.
        fan_in: Inputs that the first weights are scaled for; those of the layer unless it is a part of a wider one.
        bias: Adds $b_t$.

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
        """Rows ``(terms, …, width)``, each term by its own layer."""
        flat = rows.reshape(len(rows), -1, rows.shape[-1])
        mapped = flat @ self.weight if self.bias is None else torch.baddbmm(self.bias, flat, self.weight)
        return mapped.reshape(*rows.shape[:-1], -1)


def stacked_mlp(inputs: Sequence[int], widths: Sequence[int], dropout: float = 0.0) -> nn.Sequential:
    """A perceptron a term: layers of the given ``widths`` after the inputs, with a ReLU between them.

    A share ``dropout`` of each hidden layer is dropped while training.

    Example:
        >>> stacked_mlp([3, 5], [8, 1])(torch.zeros(2, 7, 5)).shape
        torch.Size([2, 7, 1])
    """
    layers: list[nn.Module] = [StackedLinear(inputs, widths[0])]
    for before, after in pairwise(widths):
        layers += [nn.ReLU(), *([nn.Dropout(dropout)] if dropout else []), StackedLinear([before] * len(inputs), after)]
    return nn.Sequential(*layers)
