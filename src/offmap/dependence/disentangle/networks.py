"""The networks of the colour digits: encoder, decoder and the two heads.

Reference: Open-World Learning (thesis), tables 2.5 and 2.6. Batch normalisation stands in for the instance
normalisation there, by which an image and the same image at half its brightness have one and the same code.
"""

from itertools import pairwise

from torch import nn

from offmap.nets import mlp

_SLOPE = 0.2


def encoder(outputs: int, channels: int, *, standardised: bool) -> nn.Sequential:
    """Maps images ``(n, 3, 32, 32)`` to ``(n, outputs)``; each layer halves the image and doubles the channels.

    Args:
        outputs: Width of the result.
        channels: Of the first layer, 64 in the thesis.
        standardised: Whether each number of the result has mean 0 and variance 1 over the training images.
    """
    widths = [3, channels, 2 * channels, 4 * channels, 8 * channels]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Conv2d(before, after, 4, 2, 1, bias=False), nn.BatchNorm2d(after), nn.LeakyReLU(_SLOPE)]
    layers += [nn.Conv2d(widths[-1], outputs, 2), nn.Flatten()]
    return nn.Sequential(*layers, nn.BatchNorm1d(outputs, affine=False) if standardised else nn.Identity())


def decoder(inputs: int, channels: int) -> nn.Sequential:
    """Maps ``(n, inputs)`` to images ``(n, 3, 32, 32)`` in [-1, 1]: the encoder's layers mirrored.

    Args:
        inputs: Width of a row.
        channels: Of the last layer but one, 64 in the thesis.
    """
    widths = [8 * channels, 4 * channels, 2 * channels, channels]
    layers: list[nn.Module] = [nn.Unflatten(1, (inputs, 1, 1)), nn.ConvTranspose2d(inputs, widths[0], 2)]
    for before, after in pairwise(widths):
        layers += [nn.ConvTranspose2d(before, after, 4, 2, 1, bias=False), nn.BatchNorm2d(after), nn.LeakyReLU(_SLOPE)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(widths[-1], 3, 4, 2, 1), nn.Tanh())


def digit_head(inputs: int) -> nn.Sequential:
    """Reads ten logits from a digit code."""
    return mlp([inputs, 16, 10])


def colour_head(inputs: int) -> nn.Sequential:
    """Reads red, green and blue from a colour code."""
    return nn.Sequential(mlp([inputs, 16, 3]), nn.Sigmoid())
