"""Encoders and decoders for images and for rows.

Reference: Open-World Learning (thesis), tables 2.5 and 2.6, for images of 32×32. Batch normalisation replaces the
instance normalisation there, by which an image and the same image at half its brightness would have the same code.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from offmap.nets import mlp

_SLOPE = 0.2
_MOST_HALVINGS = 4
_CHUNK = 512

Shape = Sequence[int]


def encoder(shape: Shape, outputs: int, conv_channels: int, hidden: Sequence[int], *, standardised: bool) -> nn.Module:
    """Makes a network from images ``(n, c, h, w)`` or rows ``(n, d)`` to ``(n, outputs)``.

    Args:
        shape: Shape of one image or row.
        outputs: Number of outputs.
        conv_channels: Channels of the first convolution, for images; each layer halves the sides and doubles them.
        hidden: Widths of the hidden layers, for rows.
        standardised: Whether the outputs have mean 0 and variance 1 over the training data.
    """
    images = len(shape) == 3
    layers = [*_image_encoder(shape, outputs, conv_channels)] if images else [mlp([*shape, *hidden, outputs])]
    return nn.Sequential(*layers, nn.BatchNorm1d(outputs, affine=False) if standardised else nn.Identity())


def decoder(inputs: int, shape: Shape, conv_channels: int, hidden: Sequence[int]) -> nn.Module:
    """Makes the mirror image of ``encoder``; images are in [-1, 1].

    Args:
        inputs: Number of inputs.
        shape: Shape of one image or row.
        conv_channels: Channels of the last layer but one, for images.
        hidden: Widths of the encoder's hidden layers, for rows.
    """
    if len(shape) == 3:
        return nn.Sequential(*_image_decoder(inputs, shape, conv_channels))
    return mlp([inputs, *reversed(hidden), *shape])


def _halvings(shape: Shape) -> int:
    """Number of stride-2 layers that leave sides of at least 2 pixels."""
    return max(0, min(_MOST_HALVINGS, min(shape[1:]).bit_length() - 2))


def _image_encoder(shape: Shape, outputs: int, conv_channels: int) -> Iterator[nn.Module]:
    depth = _halvings(shape)
    widths = [shape[0], *(conv_channels * 2**layer for layer in range(depth))]
    for before, after in pairwise(widths):
        yield from (nn.Conv2d(before, after, 4, 2, 1, bias=False), nn.BatchNorm2d(after), nn.LeakyReLU(_SLOPE))
    yield nn.Conv2d(widths[-1], outputs, (shape[1] >> depth, shape[2] >> depth))
    yield nn.Flatten()


def _image_decoder(inputs: int, shape: Shape, conv_channels: int) -> Iterator[nn.Module]:
    depth = _halvings(shape)
    widths = [*(conv_channels * 2**layer for layer in reversed(range(depth))), shape[0]]
    yield nn.Unflatten(1, (inputs, 1, 1))
    yield nn.ConvTranspose2d(inputs, widths[0], (shape[1] >> depth, shape[2] >> depth))
    for layer, (before, after) in zip(reversed(range(depth)), pairwise(widths), strict=True):
        # Sides 2k and 2k + 1 were both halved to k.
        odd = ((shape[1] >> layer) % 2, (shape[2] >> layer) % 2)
        yield nn.ConvTranspose2d(before, after, 4, 2, 1, output_padding=odd, bias=layer == 0)
        if layer:
            yield from (nn.BatchNorm2d(after), nn.LeakyReLU(_SLOPE))
    yield nn.Tanh()


def in_chunks(network: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """Applies a network to chunks of one fixed size, so that a row gets the same bytes in any batch."""
    with torch.inference_mode():
        return torch.cat([network(chunk) for chunk in _chunks(rows)])[: len(rows)].cpu()


def _chunks(rows: Tensor) -> Iterator[Tensor]:
    for start in range(0, len(rows), _CHUNK):
        chunk = rows[start : start + _CHUNK]
        yield torch.cat([chunk, chunk.new_zeros(_CHUNK - len(chunk), *rows.shape[1:])])
