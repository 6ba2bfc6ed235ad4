"""The likelihood beside that of another account of the row: a background model, or a compressor."""

import io
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from offmap.density.scores.bound import bits, negative_elbo
from offmap.density.scores.score import Models, Part, Score


class LikelihoodRatio(Score):
    r"""$\mathrm{bpd}(x) - \mathrm{bpd}_{bg}(x)$: what the model explains better than one of the background alone.

    The background model is of the same kind, trained on rows of which a share of the values is drawn at random, so that
    it knows how values are spread but not what they show. Cost: two passes, and a second training. Fails: where normal
    and novel rows differ in the background itself, which the ratio cancels.

    Reference: Ren et al., Likelihood Ratios for Out-of-Distribution Detection, arXiv:1906.02845.
    """

    needs: ClassVar[frozenset[Part]] = frozenset({"background"})

    def statistics(self, models: Models, X: Tensor) -> Tensor:
        """The difference in bits per dimension."""
        assert models.background is not None
        return bits(negative_elbo(models.network, X) - negative_elbo(models.background, X), X)[:, None]


class InputComplexity(Score):
    r"""$\mathrm{bpd}(x) - L(x)$ with $L$ the length of the row as a PNG file, both in bits per dimension.

    Both count the bits of pixels of 256 levels: a density over intensities in [0, 1] is worth $\log_2 255$ bits more.
    Cost: one pass, and the compression of each image. Fails: on noise, which no file can shorten, so that it looks
    familiar, and on novel images that are as complex as normal ones. For images only.

    Reference: Serrà et al., Input Complexity and Out-of-Distribution Detection with Likelihood-Based Generative Models,
    arXiv:1909.11480.
    """

    images_only: ClassVar[bool] = True

    def statistics(self, models: Models, X: Tensor) -> Tensor:
        """The difference in bits per dimension."""
        pixels = (255 * X).round().clamp(0, 255).byte().permute(0, 2, 3, 1).cpu().numpy()
        lengths = np.array([8 * png_bytes(image) / image.size for image in pixels], dtype=np.float32)
        model = bits(negative_elbo(models.network, X), X) + np.log2(255)
        return (model - torch.from_numpy(lengths).to(X.device))[:, None]


def png_bytes(image: NDArray[np.uint8]) -> int:
    """Length of an image ``(h, w, c)`` as a PNG file; channels that are not colours are put below each other."""
    height, width, channels = image.shape
    flat = image if channels == 3 else image.transpose(2, 0, 1).reshape(channels * height, width)
    file = io.BytesIO()
    Image.fromarray(flat).save(file, "png")
    return file.tell()
