"""Masked autoregressive flows that a task bends or moves."""

import math

import torch
from torch import Tensor, nn
from zuko.flows.autoregressive import MaskedAutoregressiveTransform
from zuko.transforms import MonotonicAffineTransform


class Made(nn.Module):
    """One masked autoregressive layer: shift and log scale of each feature follow the features before it."""

    def __init__(self, width: int, hidden: tuple[int, ...], backwards: bool) -> None:
        super().__init__()
        order = torch.arange(width).flip(0) if backwards else torch.arange(width)
        self.masked = MaskedAutoregressiveTransform(width, order=order, hidden_features=hidden).hyper

    def forward(self, X: Tensor, bend: Tensor | None) -> tuple[Tensor, Tensor]:
        r"""The row one layer closer to the base, and the log determinant on the way.

        Args:
            X: Rows.
            bend: Scale and bias of shift and log scale for each row, four numbers: a task's
                $f \odot \tanh(e_{scale}) + \tanh(e_{bias})$; None leaves them.
        """
        found = self.masked(X).unflatten(-1, (-1, 2))
        if bend is not None:
            scale, bias = bend.tanh().unflatten(-1, (2, 1, 2)).unbind(dim=-3)
            found = found * scale + bias
        Z, change = MonotonicAffineTransform(found[..., 0], found[..., 1]).call_and_ladj(X)
        return Z, change.sum(dim=-1)


class TaskFlow(nn.Module):
    """A stack of such layers over a Gaussian, conditioned on an embedding by bending the layers or moving the Gaussian.

    Args:
        width: Features of a row.
        hidden: Hidden layers of each autoregressive layer.
        layers: How many layers.
        size: Width of an embedding; 0 for a flow of one task.
        bends: Whether the embedding bends every layer; otherwise it moves the mean of the Gaussian.
    """

    def __init__(self, width: int, hidden: tuple[int, ...], layers: int, size: int, bends: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Made(width, hidden, backwards=place % 2 == 1) for place in range(layers)])
        self.condition = nn.Linear(size, 4 * layers if bends else width) if size else None
        self.bends = bends
        if self.condition is not None:
            nn.init.normal_(self.condition.weight, std=0.05)
            nn.init.zeros_(self.condition.bias)
            if bends:
                # Scales start near 1, and biases at 0: the unconditional flow.
                self.condition.bias.data.view(layers, 2, 2)[:, 0] = 2.0

    def forward(self, X: Tensor, embeddings: Tensor | None = None) -> Tensor:
        """The log density of each row for the task beside it."""
        told = self.condition(embeddings) if self.condition is not None else None
        bends = told.unflatten(-1, (len(self.layers), 4)) if told is not None and self.bends else None
        total = torch.zeros_like(X[..., 0])
        for place, layer in enumerate(self.layers):
            X, change = layer(X, None if bends is None else bends[..., place, :])
            total = total + change
        away = X - told if told is not None and not self.bends else X
        return total - 0.5 * (away.square() + math.log(2 * math.pi)).sum(dim=-1)
