"""Statistics of images that do not depend on what they show: brightness, contrast, colour, detail by scale and place.

Images are ``(n, c, h, w)`` with intensities in [0, 1].
"""

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, pad


def tone_and_detail(images: Tensor) -> Tensor:
    """Mean and variance per channel, and the energy of detail per scale, of the grey image and of its colours.

    Energies are logarithms of mean squares. The grey image is the mean of the channels; colour is the difference of the
    channels from it, which images of one channel do not have.
    """
    grey = images.mean(1, keepdim=True)
    flat = images.flatten(2)
    mean = flat.mean(2, keepdim=True)
    # torch's own variance takes ten times as long along a short axis.
    parts = [mean.squeeze(2), log_energy((flat - mean).square().mean(2)), haar_energies(grey)]
    if images.shape[1] > 1:
        colour = images - grey
        parts += [log_energy(colour.square().flatten(2).mean(2)), haar_energies(colour)]
    return torch.cat(parts, dim=1)


def histograms(images: Tensor) -> Tensor:
    """Log shares: of pixels in eight equal bins, of steps between neighbouring pixels by height, of black and white."""
    flat = images.flatten(1)
    steps = torch.cat([images.diff(dim=axis).abs().flatten(1) for axis in (2, 3)], dim=1)
    heights = torch.stack([steps > height for height in _HEIGHTS]).sum(0)
    ends = [(flat < _STEP / 2).float().mean(1, keepdim=True), (flat > 1 - _STEP / 2).float().mean(1, keepdim=True)]
    found = [_histogram((8 * flat).long().clamp(0, 7), 8), _histogram(heights, len(_HEIGHTS) + 1), *ends]
    return (torch.cat(found, dim=1) + 1 / flat.shape[1]).log()


def _histogram(bins: Tensor, count: int) -> Tensor:
    """The share of each bin among the entries of each row of ``bins``, ``(n, count)``."""
    first = count * torch.arange(len(bins), device=bins.device)[:, None]
    counts = torch.bincount((bins + first).flatten(), minlength=count * len(bins))
    return counts.reshape(len(bins), count) / max(bins.shape[1], 1)


def residual_size(residual: Tensor) -> Tensor:
    """Logarithms of the mean and of the largest absolute value."""
    flat = residual.abs().flatten(1)
    return (torch.stack([flat.mean(1), flat.amax(1)], dim=1) + _STEP / 4).log()


def brightness_by_place(images: Tensor) -> Tensor:
    """The mean of the image in each cell of a 4×4 grid."""
    return adaptive_avg_pool2d(images.mean(1), _CELLS).flatten(1)


def energy_by_place(residual: Tensor) -> Tensor:
    """The energy of a residual in each cell of a 4×4 grid."""
    return log_energy(adaptive_avg_pool2d(residual.square().mean(1), _CELLS).flatten(1))


def haar_energies(images: Tensor, scales: int = 3) -> Tensor:
    """Energy of the horizontal, vertical and diagonal details of images at each scale, ``(n, 3 * scales)``.

    Example:
        >>> stripes = torch.tensor([0.0, 1.0]).repeat(1, 1, 8, 4)
        >>> haar_energies(stripes, scales=1).exp().round(decimals=3)
        tensor([[0.0000, 0.2500, 0.0000]])
    """
    details = []
    for _ in range(scales):
        images = pad(images, (0, images.shape[3] % 2, 0, images.shape[2] % 2), mode="replicate")
        above, below = images[:, :, ::2], images[:, :, 1::2]
        (images, vertical), (horizontal, diagonal) = (_across(rows) for rows in (above + below, above - below))
        details += [log_energy(band.square().flatten(1).mean(1)) for band in (horizontal, vertical, diagonal)]
    return torch.stack(details, dim=1)


def _across(rows: Tensor) -> tuple[Tensor, Tensor]:
    """A quarter of the sum and of the difference of each pair of horizontal neighbours."""
    left, right = rows[..., ::2] / 4, rows[..., 1::2] / 4
    return left + right, left - right


def log_energy(squares: Tensor) -> Tensor:
    """Logarithms of mean squares, bounded below at a quarter of the step between two of 256 levels."""
    return (squares + (_STEP / 4) ** 2).log()


_STEP = 1 / 255
_CELLS = 4
# Heights of steps between neighbouring pixels: none, rounding and noise, faint, plain, edges.
_HEIGHTS = (_STEP / 2, 4 * _STEP, 16 * _STEP, 64 * _STEP)
