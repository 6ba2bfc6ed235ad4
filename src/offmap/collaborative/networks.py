"""Networks of rows: perceptrons, and the convolutions of the paper for images."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from offmap.collaborative.augmentation import Augment, augmentation
from offmap.nets import Standardise
from offmap.nets.image_rule import is_image, is_large_image
from offmap.nets.steady import Linear

Network = Literal["auto", "mlp", "conv"]
# Side of the images that the convolutions of the paper take; others are resized to it.
_SIDE = 32


def perceptron(widths: Sequence[int], dropout: float | Sequence[float] = 0.0, bias: bool = True) -> nn.Sequential:
    """Linear layers, each followed by a ReLU and its own dropout.

    Example:
        >>> [type(layer).__name__ for layer in perceptron([4, 8, 2], dropout=(0.5, 0.0))]
        ['Linear', 'ReLU', 'Dropout', 'Linear', 'ReLU']
    """
    layers: list[nn.Module] = []
    for (inputs, outputs), share in zip(pairwise(widths), _shares(dropout, len(widths) - 1), strict=True):
        layers += [Linear(inputs, outputs, bias=bias), nn.ReLU(), *([nn.Dropout(share)] if share else [])]
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
        batch_norm: Whether layers are normalised over a batch, as in the paper. Otherwise each image is normalised
            alone, which the networks of many entities can do at the same time.

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
        """One vector per image."""
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
    input_shape: tuple[int, ...],
    network: Network,
    conv_channels: int,
    batch_norm: bool = True,
    augment: Augment = "none",
) -> "RowNetwork":
    """The network for rows ``(d,)`` or images ``(h, w, c)``; "auto" takes convolutions for all but small images."""
    if network == "conv":
        need_images(input_shape, 'network="conv"')
    if augment != "none":
        need_images(input_shape, f'augment="{augment}"')
    convolutional = is_large_image(input_shape) if network == "auto" else network == "conv"
    return RowNetwork(tensor_shape(input_shape), convolutional, conv_channels, batch_norm, augment)


def need_images(input_shape: tuple[int, ...], setting: str) -> None:
    """Raises a ``ValueError`` unless rows are images."""
    if not is_image(input_shape):
        raise ValueError(f"{setting} needs images; give image_shape, or X as (n, h, w) or (n, h, w, c)")


def flat_rows(input_shape: tuple[int, ...]) -> "RowNetwork":
    """Standardised features of rows, and of images taken as flat rows."""
    return RowNetwork(tensor_shape(input_shape), convolutional=False)


def tensor_shape(input_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of a row as a tensor: images ``(h, w, c)`` become ``(c, h, w)``."""
    return input_shape[-1:] + input_shape[:-1] if is_image(input_shape) else input_shape


class RowNetwork(nn.Module):
    """Standardises rows or images and, for images, computes features by convolutions.

    Args:
        shape: Shape of what comes in: ``(d,)`` or ``(c, h, w)``.
        convolutional: Whether images go through convolutions; otherwise they count as flat rows.
        conv_channels: Channels of the first convolution.
        batch_norm: As in ``Convolutions``.
        augment: How images are changed at random in training.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        convolutional: bool,
        conv_channels: int = 1,
        batch_norm: bool = True,
        augment: Augment = "none",
    ) -> None:
        super().__init__()
        self.augment = augmentation(augment)
        self.prepare: ChannelStandardise | Standardise
        self.body: nn.Module
        if convolutional:
            self.prepare, body = ChannelStandardise(shape[0]), Convolutions(shape[0], conv_channels, batch_norm)
            self.outputs, self.body = body.outputs, body
        else:
            self.outputs = prod(shape)
            self.prepare, self.body = Standardise(self.outputs), nn.Identity()
        self.convolutional = convolutional

    def fit(self, X: Tensor) -> "RowNetwork":
        """Measures the rows for the standardisation."""
        self.prepare.fit(X if self.convolutional else X.flatten(1))
        return self

    def forward(self, X: Tensor) -> Tensor:
        """One vector per row."""
        rows = self.augment(X)
        return self.body(self.prepare(rows if self.convolutional else rows.flatten(1)))
