"""The convolutional encoder that the papers use for 28×28 images, and its mirror; both work for any size.

Reference: Rosca, Lakshminarayanan and Mohamed, Distribution Matching in Variational Inference, arXiv:1802.06847,
appendix K, table 4.
"""

from itertools import pairwise

from torch import Tensor, nn

# Channels and stride of each 5×5 convolution of the encoder.
_LAYERS = ((8, 2), (16, 1), (32, 2), (64, 1), (64, 2))


def _sides(side: int) -> list[int]:
    """Side of the image before the first and after each convolution."""
    sides = [side]
    for _, stride in _LAYERS:
        sides.append(-(-sides[-1] // stride))
    return sides


class ConvEncoder(nn.Module):
    """Maps images ``(n, c, h, w)`` to ``(n, outputs)``.

    Args:
        shape: Channels, height and width of an image.
        outputs: Width of the result.
        conv_factor: Multiplies the channels of every layer.
    """

    def __init__(self, shape: tuple[int, int, int], outputs: int, conv_factor: int = 1) -> None:
        super().__init__()
        channels = [shape[0], *(conv_factor * width for width, _ in _LAYERS)]
        layers: list[nn.Module] = []
        for (before, after), (_, stride) in zip(pairwise(channels), _LAYERS, strict=True):
            layers += [nn.Conv2d(before, after, 5, stride=stride, padding=2), nn.ReLU()]
        flat = channels[-1] * _sides(shape[1])[-1] * _sides(shape[2])[-1]
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, outputs))

    def forward(self, images: Tensor) -> Tensor:
        """One vector per image."""
        return self.layers(images)


class ConvDecoder(nn.Module):
    """Maps ``(n, inputs)`` to images ``(n, c, h, w)``: the encoder's layers mirrored, with transposed convolutions.

    Args:
        inputs: Width of a latent vector.
        shape: Channels, height and width of the result.
        conv_factor: Multiplies the channels of every layer but the last.
    """

    def __init__(self, inputs: int, shape: tuple[int, int, int], conv_factor: int = 1) -> None:
        super().__init__()
        channels = [shape[0], *(conv_factor * width for width, _ in _LAYERS)]
        heights, widths = _sides(shape[1]), _sides(shape[2])
        start = (channels[-1], heights[-1], widths[-1])
        layers: list[nn.Module] = [nn.Linear(inputs, start[0] * start[1] * start[2]), nn.Unflatten(1, start)]
        for depth in reversed(range(len(_LAYERS))):
            stride = _LAYERS[depth][1]
            # A stride of 2 maps sides 2k - 1 and 2k to k; the extra row and column tell which it was.
            extra = [sides[depth] - (stride * (sides[depth + 1] - 1) + 1) for sides in (heights, widths)]
            layers += [nn.ReLU(), _transposed(channels[depth + 1], channels[depth], stride, extra)]
        self.layers = nn.Sequential(*layers)

    def forward(self, latents: Tensor) -> Tensor:
        """One image per latent vector."""
        return self.layers(latents)


def _transposed(before: int, after: int, stride: int, extra: list[int]) -> nn.ConvTranspose2d:
    return nn.ConvTranspose2d(before, after, 5, stride=stride, padding=2, output_padding=(extra[0], extra[1]))
