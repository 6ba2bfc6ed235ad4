"""Masked autoregressive flows, conditioned on the embedding of an entity."""

import math

import torch
from torch import Tensor, nn
from zuko.flows.autoregressive import MaskedAutoregressiveTransform
from zuko.nn import MaskedLinear
from zuko.transforms import MonotonicAffineTransform

from offmap.nets.steady import linear_layer

# Standard deviation of the scales and biases that entities of their own start from.
_NOISE = 0.1


class Made(nn.Module):
    """One masked autoregressive layer: shift and log scale of each feature follow the features before it.

    Attributes:
        units: Units of its masked linear layers, all together.
        widths: Units of each.
    """

    def __init__(self, width: int, hidden: tuple[int, ...], backwards: bool) -> None:
        super().__init__()
        if width < 2:
            raise ValueError(f"X must have at least 2 features for an autoregressive flow; got {width}")
        order = torch.arange(width).flip(0) if backwards else torch.arange(width)
        self.masked = MaskedAutoregressiveTransform(width, order=order, hidden_features=hidden).hyper
        self.widths = [part.out_features for part in self.masked if isinstance(part, MaskedLinear)]
        self.units = sum(self.widths)

    def forward(self, X: Tensor, bend: Tensor | None) -> tuple[Tensor, Tensor]:
        r"""Moves rows one layer closer to the base; returns them and the log determinant.

        Args:
            X: Rows.
            bend: Scale and bias of every unit (…, 2, units) for each row: an entity turns the output $f$ of a masked
                linear layer into $f \odot scale + bias$; None leaves it.
        """
        found, bends = X, iter(() if bend is None else bend.split(self.widths, dim=-1))
        for part in self.masked:
            if not isinstance(part, MaskedLinear):
                found = part(found)
                continue
            found = linear_layer(found, part.mask * part.weight, part.bias)
            if bend is not None:
                scale, bias = next(bends).unbind(dim=-2)
                found = found * scale + bias
        shift, log_scale = found.unflatten(-1, (-1, 2)).unbind(dim=-1)
        Z, change = MonotonicAffineTransform(shift, log_scale).call_and_ladj(X)
        return Z, change.sum(dim=-1)


class ConditionedFlow(nn.Module):
    """A stack of such layers over a Gaussian; an embedding scales and shifts the layers, or moves the Gaussian.

    Args:
        width: Number of features.
        hidden: Hidden layers of each autoregressive layer.
        layers: Number of layers.
        size: Width of an embedding; 0 for a flow without condition.
        bends: Whether the embedding scales and shifts every layer; otherwise it moves the mean of the Gaussian.
        own: Whether the embedding is the scales and biases themselves, whatever ``size``; otherwise they are a linear
            map of it.
    """

    def __init__(
        self, width: int, hidden: tuple[int, ...], layers: int, size: int, bends: bool, own: bool = False
    ) -> None:
        super().__init__()
        stack = [Made(width, hidden, backwards=place % 2 == 1) for place in range(layers)]
        self.layers = nn.ModuleList(stack)
        self.bends = (layers, 2, stack[0].units) if bends else None
        self.condition: nn.Module | None = nn.Identity() if own else None
        if size and not own:
            self.condition = nn.Linear(size, math.prod(self.bends or (width,)))
            # Standard normal embeddings give standard normal outputs, so that entities differ from the start.
            nn.init.normal_(self.condition.weight, std=size**-0.5)
            nn.init.zeros_(self.condition.bias)
            if self.bends is not None:
                # Scales start around tanh(1), where they can still move, and biases around 0.
                self.condition.bias.data.view(self.bends)[:, 0] = 1.0

    def first_vectors(self, entities: int) -> Tensor:
        """Scales and biases of each entity's own to start from, close to those that leave a layer as it is."""
        assert self.bends is not None
        vectors = _NOISE * torch.randn(entities, *self.bends)
        vectors[:, :, 0] += 1.0
        return vectors.flatten(1)

    def forward(self, X: Tensor, embeddings: Tensor | None = None) -> Tensor:
        """The log density of each row for the entity beside it."""
        told = self.condition(embeddings) if self.condition is not None else None
        bends = told.tanh().unflatten(-1, self.bends) if told is not None and self.bends is not None else None
        total = torch.zeros_like(X[..., 0])
        # Unbound at once: the gradient of every slice would be as large as all bends.
        each = [None] * len(self.layers) if bends is None else bends.unbind(dim=-3)
        for layer, bend in zip(self.layers, each, strict=True):
            X, change = layer(X, bend)
            total = total + change
        away = X - told if told is not None and bends is None else X
        return total - 0.5 * (away.square() + math.log(2 * math.pi)).sum(dim=-1)
