"""The DCGAN encoder and decoder that the papers use for colour images; they work for images of any size.

Reference: Radford, Metz and Chintala, Unsupervised Representation Learning with Deep Convolutional Generative
Adversarial Networks, arXiv:1511.06434.
"""

from itertools import pairwise

from torch import Tensor, nn
from torch.nn.utils import parametrizations

_ENCODER = (32, 64, 128)
_DECODER = (128, 128, 64)
# Three halvings leave at least one pixel.
SMALLEST_SIDE = 2 ** len(_ENCODER)


class DCGANEncoder(nn.Module):
    """Maps images ``(n, c, h, w)`` to ``(n, outputs)``: convolutions, each with batch normalisation and a ReLU.

    Args:
        shape: Channels, height and width of an image.
        outputs: Width of the result.
        conv_factor: Multiplies the channels of every layer.
        spectral_norm: Normalises the spectral norm of each convolution instead of batches, as in adversarial
            training.
    """

    def __init__(
        self, shape: tuple[int, int, int], outputs: int, conv_factor: int = 1, *, spectral_norm: bool = False
    ) -> None:
        super().__init__()
        channels = [shape[0], *(conv_factor * width for width in _ENCODER)]
        layers: list[nn.Module] = []
        for before, after in pairwise(channels):
            layer = nn.Conv2d(before, after, 4, stride=2, padding=1)
            layers += [parametrizations.spectral_norm(layer)] if spectral_norm else [layer, nn.BatchNorm2d(after)]
            layers += [nn.ReLU()]
        flat = channels[-1] * _sides(shape[1])[-1] * _sides(shape[2])[-1]
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, outputs))

    def forward(self, images: Tensor) -> Tensor:
        """One vector per image."""
        return self.layers(images)


class DCGANDecoder(nn.Module):
    """Maps ``(n, inputs)`` to images ``(n, c, h, w)``: transposed convolutions with batch normalisation and ReLUs.

    Args:
        inputs: Width of a latent vector.
        shape: Channels, height and width of the result.
        conv_factor: Multiplies the channels of every layer but the last.
    """

    def __init__(self, inputs: int, shape: tuple[int, int, int], conv_factor: int = 1) -> None:
        super().__init__()
        channels = [*(conv_factor * width for width in _DECODER), shape[0]]
        heights, widths = _sides(shape[1]), _sides(shape[2])
        start = (channels[0], heights[-1], widths[-1])
        layers: list[nn.Module] = [nn.Linear(inputs, start[0] * start[1] * start[2]), nn.Unflatten(1, start)]
        depths = reversed(range(len(_DECODER)))
        for depth, (before, after) in zip(depths, pairwise(channels), strict=True):
            # Sides 2k and 2k + 1 were both halved to k.
            extra = (heights[depth] % 2, widths[depth] % 2)
            up = nn.ConvTranspose2d(before, after, 4, stride=2, padding=1, output_padding=extra)
            layers += [nn.BatchNorm2d(before), nn.ReLU(), up]
        self.layers = nn.Sequential(*layers)

    def forward(self, latents: Tensor) -> Tensor:
        """One image per latent vector."""
        return self.layers(latents)


def _sides(side: int) -> list[int]:
    """Side of the image before the first and after each convolution of the encoder."""
    if side < SMALLEST_SIDE:
        raise ValueError(f"images must be at least {SMALLEST_SIDE} pixels high and wide; got a side of {side}")
    return [side // 2**depth for depth in range(len(_ENCODER) + 1)]
