"""Shapes, sizes and what a layer can see, for images of any side."""

import pytest
import torch
from torch import nn

from offmap.nets import ConvDecoder, ConvEncoder

SIZES = [(8, 8), (15, 15), (27, 27), (28, 28), (32, 32), (33, 33), (15, 28), (33, 8), (1, 5)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("colours", [1, 3])
def test_images_of_any_size_are_encoded_and_decoded(size: tuple[int, int], colours: int) -> None:
    images = torch.rand(2, colours, *size)
    latents = ConvEncoder((colours, *size), outputs=7)(images)
    assert latents.shape == (2, 7)
    assert ConvDecoder(7, (colours, *size))(latents).shape == images.shape


@pytest.mark.parametrize("size", [(15, 28), (28, 28)])
def test_every_pixel_counts(size: tuple[int, int]) -> None:
    """Also those at the edges, which a wrong padding would lose."""
    images = torch.rand(1, 1, *size, requires_grad=True)
    ConvEncoder((1, *size), outputs=1)(images).sum().backward()
    assert images.grad is not None
    assert (images.grad != 0).float().mean() > 0.9
    assert all(images.grad[0, 0, row, column] != 0 for row in (0, -1) for column in (0, -1))
    decoder = ConvDecoder(2, (1, *size))
    difference = decoder(torch.zeros(1, 2)) - decoder(torch.ones(1, 2))
    assert (difference != 0).float().mean() > 0.9


def widths(network: nn.Module) -> list[tuple[int, int, tuple[int, ...]]]:
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d)]
    return [(layer.in_channels, layer.out_channels, tuple(layer.stride)) for layer in layers]


@pytest.mark.parametrize("conv_factor", [1, 2, 3])
def test_conv_factor_multiplies_the_channels_of_the_table_in_the_paper(conv_factor: int) -> None:
    c = conv_factor
    table = [(3, 8 * c, 2), (8 * c, 16 * c, 1), (16 * c, 32 * c, 2), (32 * c, 64 * c, 1), (64 * c, 64 * c, 2)]
    assert widths(ConvEncoder((3, 28, 28), 5, conv_factor)) == [(i, o, (s, s)) for i, o, s in table]
    assert widths(ConvDecoder(5, (3, 28, 28), conv_factor)) == [(o, i, (s, s)) for i, o, s in reversed(table)]


def test_the_decoder_ends_without_an_activation() -> None:
    """Its output is read as logits or means, of either sign."""
    assert isinstance(list(ConvDecoder(3, (1, 16, 16)).modules())[-1], nn.ConvTranspose2d)
    assert isinstance(list(ConvEncoder((1, 16, 16), 3).modules())[-1], nn.Linear)
