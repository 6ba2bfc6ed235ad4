"""Shapes, channels and norms of the networks for colour images."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from offmap.nets import DCGANDecoder, DCGANEncoder


@pytest.mark.parametrize("size", [(8, 8), (15, 17), (16, 16), (28, 28), (32, 32), (33, 47)])
@pytest.mark.parametrize("colours", [1, 3])
def test_images_of_any_size_are_encoded_and_decoded(size: tuple[int, int], colours: int) -> None:
    images = torch.rand(2, colours, *size)
    latents = DCGANEncoder((colours, *size), outputs=7)(images)
    assert latents.shape == (2, 7)
    assert DCGANDecoder(7, (colours, *size))(latents).shape == images.shape


def test_images_that_cannot_be_halved_three_times_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 8 pixels high and wide; got a side of 7"):
        DCGANEncoder((3, 8, 7), outputs=2)
    with pytest.raises(ValueError, match="at least 8 pixels"):
        DCGANDecoder(2, (3, 7, 8))


@pytest.mark.parametrize("conv_factor", [1, 2])
def test_conv_factor_multiplies_the_channels_of_the_paper(conv_factor: int) -> None:
    c = conv_factor

    def channels(network: nn.Module) -> list[tuple[int, int]]:
        layers = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d)]
        assert all((layer.kernel_size, layer.stride) == ((4, 4), (2, 2)) for layer in layers)
        return [(layer.in_channels, layer.out_channels) for layer in layers]

    assert channels(DCGANEncoder((3, 32, 32), 5, c)) == [(3, 32 * c), (32 * c, 64 * c), (64 * c, 128 * c)]
    assert channels(DCGANDecoder(5, (3, 32, 32), c)) == [(128 * c, 128 * c), (128 * c, 64 * c), (64 * c, 3)]


def test_every_pixel_counts() -> None:
    images = torch.rand(1, 3, 33, 32, requires_grad=True)
    DCGANEncoder((3, 33, 32), outputs=1).eval()(images).sum().backward()
    assert images.grad is not None
    # Three halvings drop the last row of an odd side, as a stride of 2 does.
    assert (images.grad[:, :, :32] != 0).float().mean() > 0.9


def test_spectral_norms_take_the_place_of_batch_normalisation() -> None:
    torch.manual_seed(0)
    plain, spectral = DCGANEncoder((3, 16, 16), 4), DCGANEncoder((3, 16, 16), 4, spectral_norm=True)
    assert any(isinstance(layer, nn.BatchNorm2d) for layer in plain.modules())
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in spectral.modules())
    for _ in range(100):
        spectral(torch.rand(2, 3, 16, 16))
    for layer in spectral.layers:
        if isinstance(layer, nn.Conv2d):
            largest = torch.linalg.matrix_norm(layer.weight.flatten(1), 2)
            assert_close(largest.detach(), torch.ones(()), rtol=0.02, atol=0)
