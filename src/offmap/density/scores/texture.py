"""What images look like apart from what they show: brightness, contrast, colour, energy by scale and by place."""

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, pad


def levels(pixels: Tensor) -> Tensor:
    """Mean of each channel, and the energies of their mean and of the channels' departures from it, by scale.

    Energies are logarithms of mean squares. The mean of the channels is what a grey picture would show; what is left is
    colour, which images of one channel do not have.
    """
    grey = pixels.mean(1, keepdim=True)
    flat = pixels.flatten(2)
    mean = flat.mean(2, keepdim=True)
    # torch's own variance takes ten times as long along a short axis.
    parts = [mean.squeeze(2), energy((flat - mean).square().mean(2)), haar_energies(grey)]
    if pixels.shape[1] > 1:
        colour = pixels - grey
        parts += [energy(colour.square().flatten(2).mean(2)), haar_energies(colour)]
    return torch.cat(parts, dim=1)


def shares(images: Tensor) -> Tensor:
    """Logarithms of the shares of pixels in eight equal bins, at either end, and of steps between pixels by height."""
    flat = images.flatten(1)
    steps = torch.cat([images.diff(dim=axis).abs().flatten(1) for axis in (2, 3)], dim=1)
    heights = torch.stack([steps > height for height in _HEIGHTS]).sum(0)
    ends = [(flat < _STEP / 2).float().mean(1, keepdim=True), (flat > 1 - _STEP / 2).float().mean(1, keepdim=True)]
    found = [_histogram((8 * flat).long().clamp(0, 7), 8), _histogram(heights, len(_HEIGHTS) + 1), *ends]
    return (torch.cat(found, dim=1) + 1 / flat.shape[1]).log()


def _histogram(places: Tensor, count: int) -> Tensor:
    """The share of each place among the ``places`` of a row, ``(n, count)``."""
    first = count * torch.arange(len(places), device=places.device)[:, None]
    counts = torch.bincount((places + first).flatten(), minlength=count * len(places))
    return counts.reshape(len(places), count) / max(places.shape[1], 1)


def sizes(residual: Tensor) -> Tensor:
    """Logarithms of the mean and of the largest absolute value."""
    flat = residual.abs().flatten(1)
    return (torch.stack([flat.mean(1), flat.amax(1)], dim=1) + _STEP / 4).log()


def places(images: Tensor, residual: Tensor) -> Tensor:
    """On a grid of 4×4 cells, the mean of the images and the energy of the residual."""
    brightness = adaptive_avg_pool2d(images.mean(1), _CELLS)
    unexplained = adaptive_avg_pool2d(residual.square().mean(1), _CELLS)
    return torch.cat([brightness.flatten(1), energy(unexplained.flatten(1))], dim=1)


def haar_energies(pixels: Tensor, scales: int = 3) -> Tensor:
    """Energy of the horizontal, vertical and diagonal details of images at each scale, ``(n, 3 * scales)``.

    Example:
        >>> stripes = torch.tensor([0.0, 1.0]).repeat(1, 1, 8, 4)
        >>> haar_energies(stripes, scales=1).exp().round(decimals=3)
        tensor([[0.0000, 0.2500, 0.0000]])
    """
    details = []
    for _ in range(scales):
        pixels = pad(pixels, (0, pixels.shape[3] % 2, 0, pixels.shape[2] % 2), mode="replicate")
        above, below = pixels[:, :, ::2], pixels[:, :, 1::2]
        (pixels, vertical), (horizontal, diagonal) = (_across(rows) for rows in (above + below, above - below))
        details += [energy(band.square().flatten(1).mean(1)) for band in (horizontal, vertical, diagonal)]
    return torch.stack(details, dim=1)


def _across(rows: Tensor) -> tuple[Tensor, Tensor]:
    """A quarter of the sum and of the difference of each two neighbours in a row."""
    left, right = rows[..., ::2] / 4, rows[..., 1::2] / 4
    return left + right, left - right


def energy(squares: Tensor) -> Tensor:
    """Logarithms of mean squares, which stop at a quarter of the step between two of 256 levels."""
    return (squares + (_STEP / 4) ** 2).log()


_STEP = 1 / 255
_CELLS = 4
# Steps between neighbouring pixels: none, within rounding and noise, faint, plain, and edges.
_HEIGHTS = (_STEP / 2, 4 * _STEP, 16 * _STEP, 64 * _STEP)
