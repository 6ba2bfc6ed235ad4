"""One-versus-rest heads, all of them in one computation."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout


class OneVersusRestHeads(nn.Module):
    """A small perceptron for each class, their weights stacked so that one batched product serves all.

    Args:
        classes: Number of heads.
        inputs: Width of a row.
        hidden: Widths of the hidden layers of each head.
        dropout: Share of each hidden layer dropped while training.

    Example:
        >>> heads = OneVersusRestHeads(classes=5, inputs=3, hidden=(8, 4), dropout=0.0)
        >>> heads.own(torch.zeros(5, 2, 3)).shape, heads(torch.zeros(7, 3)).shape
        (torch.Size([5, 2]), torch.Size([7, 5]))
    """

    def __init__(self, classes: int, inputs: int, hidden: Sequence[int], dropout: float) -> None:
        super().__init__()
        widths = [inputs, *hidden, 1]
        self.weights = nn.ParameterList(_uniform(before, classes, before, after) for before, after in pairwise(widths))
        self.biases = nn.ParameterList(_uniform(before, classes, 1, after) for before, after in pairwise(widths))
        self.dropout = dropout

    def own(self, rows: Tensor) -> Tensor:
        """Logits ``(classes, n)`` of rows ``(classes, n, inputs)``: each head sees rows of its own."""
        values = torch.baddbmm(self.biases[0], rows, self.weights[0])
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            values = torch.baddbmm(bias, dropout(values.relu(), self.dropout, self.training), weight)
        return values.squeeze(-1)

    def forward(self, rows: Tensor) -> Tensor:
        """Logits ``(n, classes)`` of rows ``(n, inputs)``: each head sees the same rows."""
        return self.own(rows.expand(len(self.weights[0]), *rows.shape)).transpose(0, 1)


def _uniform(fan_in: int, *shape: int) -> nn.Parameter:
    """The usual first weights of a linear layer."""
    return nn.Parameter(torch.empty(shape).uniform_(-(fan_in**-0.5), fan_in**-0.5))
