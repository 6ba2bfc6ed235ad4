"""What is made of a row before a task comes in: a perceptron, or the convolutions of the paper."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from offmap.nets import Standardise

# Side of the images that the convolutions of the paper take; others are resized to it.
_SIDE = 32
# Smaller images have no parts to share weights over.
_SMALLEST_FOR_CONVOLUTIONS = 16


def perceptron(widths: Sequence[int], dropout: float | Sequence[float] = 0.0, bias: bool = True) -> nn.Sequential:
    """Linear layers, each followed by a ReLU and its own dropout.

    Example:
        >>> [type(layer).__name__ for layer in perceptron([4, 8, 2], dropout=(0.5, 0.0))]
        ['Linear', 'ReLU', 'Dropout', 'Linear', 'ReLU']
    """
    layers: list[nn.Module] = []
    for (inputs, outputs), share in zip(pairwise(widths), _shares(dropout, len(widths) - 1), strict=True):
        layers += [nn.Linear(inputs, outputs, bias=bias), nn.ReLU(), *([nn.Dropout(share)] if share else [])]
    return nn.Sequential(*layers)


def _shares(dropout: float | Sequence[float], layers: int) -> list[float]:
    shares = list(dropout) if isinstance(dropout, Sequence) else [dropout] * layers
    if len(shares) != layers:
        raise ValueError(f"dropout must be one number, or one for each of the {layers} layers of hidden; got {shares}")
    return shares


class Convolutions(nn.Module):
    """Maps images ``(n, c, h, w)`` to ``(n, 8 * width)`` by four convolutions; other sizes are resized to 32 × 32.

    Args:
        channels: Channels of an image.
        width: Channels of the first layer; the next have 2, 4 and 8 times as many. The paper's is 64.
        batch_norm: Whether layers are normalised over a batch, as in the paper; otherwise over each image alone, which
            networks of many tasks can do side by side.

    Reference: Bai et al., Collaborative Anomaly Detection, table 4.
    """

    def __init__(self, channels: int, width: int, batch_norm: bool = True) -> None:
        super().__init__()
        self.outputs = 8 * width
        shapes = ((width, 4, 2, 1), (2 * width, 4, 2, 1), (4 * width, 5, 1, 0), (8 * width, 4, 1, 0))
        layers: list[nn.Module] = []
        for after, kernel, stride, padding in shapes:
            convolution = nn.Conv2d(channels, after, kernel, stride=stride, padding=padding, bias=False)
            norm = nn.BatchNorm2d(after) if batch_norm else nn.GroupNorm(1, after, affine=False)
            layers += [convolution, norm, nn.ReLU()]
            channels = after
        self.layers = nn.Sequential(*layers[:-1], nn.Flatten())

    def forward(self, images: Tensor) -> Tensor:
        """One vector an image."""
        if images.shape[-2:] != (_SIDE, _SIDE):
            images = interpolate(images, (_SIDE, _SIDE), mode="bilinear", align_corners=False)
        return self.layers(images)


class ChannelStandardise(nn.Module):
    """Maps each channel of an image to mean 0 and standard deviation 1 over the images it was fitted on."""

    mean: Tensor
    scale: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels, 1, 1))
        self.register_buffer("scale", torch.ones(channels, 1, 1))

    def fit(self, images: Tensor) -> "ChannelStandardise":
        """Measures the images."""
        self.mean.copy_(images.mean(dim=(0, 2, 3)).view(-1, 1, 1))
        self.scale.copy_(images.std(dim=(0, 2, 3)).clamp(min=1e-6).view(-1, 1, 1))
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Standardised images."""
        return (images - self.mean) / self.scale


def row_network(
    input_shape: tuple[int, ...], kind: Literal["auto", "mlp", "conv"], conv_width: int, batch_norm: bool = True
) -> "RowNetwork":
    """The network for rows ``(d,)`` or images ``(h, w, c)``; "auto" takes convolutions for all but small images."""
    images = len(input_shape) == 3
    if kind == "conv" and not images:
        raise ValueError('"conv" needs images; give image_shape, or X as (n, h, w) or (n, h, w, c)')
    large = images and min(input_shape[:2]) >= _SMALLEST_FOR_CONVOLUTIONS
    shape = input_shape[-1:] + input_shape[:-1] if images else input_shape
    return RowNetwork(shape, large if kind == "auto" else kind == "conv", conv_width, batch_norm)


class RowNetwork(nn.Module):
    """Standardises rows or images and, for images, finds features by convolutions.

    Args:
        shape: Shape of what comes in: ``(d,)`` or ``(c, h, w)``.
        convolutional: Whether images go through convolutions; otherwise they count as flat rows.
        conv_width: Width of the convolutions.
        batch_norm: As in ``Convolutions``.
    """

    def __init__(self, shape: tuple[int, ...], convolutional: bool, conv_width: int, batch_norm: bool = True) -> None:
        super().__init__()
        self.prepare: ChannelStandardise | Standardise
        self.body: nn.Module
        if convolutional:
            self.prepare, body = ChannelStandardise(shape[0]), Convolutions(shape[0], conv_width, batch_norm)
            self.outputs, self.body = body.outputs, body
        else:
            self.outputs = prod(shape)
            self.prepare, self.body = Standardise(self.outputs), nn.Identity()
        self.convolutional = convolutional

    def measure(self, X: Tensor) -> None:
        """Fits the standardisation."""
        self.prepare.fit(X if self.convolutional else X.flatten(1))

    def forward(self, X: Tensor) -> Tensor:
        """One vector a row."""
        return self.body(self.prepare(X if self.convolutional else X.flatten(1)))
