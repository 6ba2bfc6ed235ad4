"""Random changes of training images that leave what they show as it is: crops and mirror images."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

Augment = Literal["none", "crop", "crop_flip"]
# Side of the padding, as a part of the side of an image: 4 pixels for 32, as in the paper.
_PADDING = 8


class RandomCrop(nn.Module):
    """Cuts a random part of the same size out of each image padded with zeros, in training mode alone.

    Args:
        flip: Whether half of the images are mirrored, left to right, as well.

    Reference: Bai et al., Collaborative Anomaly Detection, appendix D.1.

    Example:
        >>> images = torch.rand(4, 3, 32, 32)
        >>> bool((RandomCrop(flip=True).eval()(images) == images).all())
        True
    """

    def __init__(self, flip: bool) -> None:
        super().__init__()
        self.flip = flip

    def forward(self, images: Tensor) -> Tensor:
        """Images ``(n, c, h, w)`` that are each cropped at their own place."""
        if not self.training:
            return images
        height, width = images.shape[-2:]
        margins = [side // _PADDING for side in (width, width, height, height)]
        windows = pad(images, margins).unfold(2, height, 1).unfold(3, width, 1)
        down, right = (torch.randint(size, images.shape[:1], device=images.device) for size in windows.shape[2:4])
        cut = windows[torch.arange(len(images), device=images.device), :, down, right]
        if not self.flip:
            return cut
        return torch.where(torch.rand(len(cut), 1, 1, 1, device=cut.device) < 0.5, cut.flip(3), cut)


def augmentation(augment: Augment) -> nn.Module:
    """What ``augment`` names; "none" leaves images as they are."""
    return nn.Identity() if augment == "none" else RandomCrop(flip=augment == "crop_flip")
