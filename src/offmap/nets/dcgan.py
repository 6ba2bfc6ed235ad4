"""The convolutional networks for colour images that the papers use: DCGAN's, with kernels of 4×4; they take any size.

Reference: Radford, Metz and Chintala, Unsupervised Representation Learning with Deep Convolutional Generative
Adversarial Networks, arXiv:1511.06434.
"""

from itertools import pairwise

from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

_ENCODER = (32, 64, 128)
_DECODER = (128, 128, 64)
# Three halvings leave at least one pixel.
SMALLEST_SIDE = 2 ** len(_ENCODER)


class DCGANEncoder(nn.Module):
    """Maps images ``(n, c, h, w)`` to ``(n, outputs)``: convolutions, each with batch normalisation and a ReLU.

    Args:
        shape: Channels, height and width of an image.
        outputs: Width of the result.
        capacity: Multiplies the channels of every layer.
        spectral: Holds the spectral norm of every convolution at 1 in place of normalising batches, as for
            adversarial training.
    """

    def __init__(self, shape: tuple[int, int, int], outputs: int, capacity: int = 1, *, spectral: bool = False) -> None:
        super().__init__()
        channels = [shape[0], *(capacity * width for width in _ENCODER)]
        layers: list[nn.Module] = []
        for before, after in pairwise(channels):
            layer = nn.Conv2d(before, after, 4, stride=2, padding=1)
            layers += [spectral_norm(layer)] if spectral else [layer, nn.BatchNorm2d(after)]
            layers += [nn.ReLU()]
        flat = channels[-1] * _sides(shape[1])[-1] * _sides(shape[2])[-1]
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, outputs))

    def forward(self, images: Tensor) -> Tensor:
        """One vector an image."""
        return self.layers(images)


class DCGANDecoder(nn.Module):
    """Maps ``(n, inputs)`` to images ``(n, c, h, w)``: transposed convolutions with batch normalisation and ReLUs.

    Args:
        inputs: Width of a latent vector.
        shape: Channels, height and width of the result.
        capacity: Multiplies the channels of every layer but the last.
    """

    def __init__(self, inputs: int, shape: tuple[int, int, int], capacity: int = 1) -> None:
        super().__init__()
        channels = [*(capacity * width for width in _DECODER), shape[0]]
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
        """One image a latent vector."""
        return self.layers(latents)


def _sides(side: int) -> list[int]:
    """Side of the image before the first and after each convolution of the encoder."""
    if side < SMALLEST_SIDE:
        raise ValueError(f"images must be at least {SMALLEST_SIDE} pixels high and wide; got a side of {side}")
    return [side // 2**depth for depth in range(len(_ENCODER) + 1)]
