"""The likelihood compared with another code length: that of a background model, or of a PNG file."""

import io
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from offmap.density.vae.scores.bound import bits_per_dimension, negative_elbo
from offmap.density.vae.scores.score import Networks, Requirement, Score
from offmap.parameters import Fraction


@dataclass(kw_only=True, eq=False, repr=False)
class LikelihoodRatio(Score):
    r"""$\mathrm{bpd}(x) - \mathrm{bpd}_{bg}(x)$: how much better the model explains a row than a background model.

    The background model is of the same kind, trained on rows with a share of their values replaced at random: it learns
    how values are distributed but not what the rows show. Cost: two forward passes, and a second training. Fails: where
    normal and novel rows differ in the background itself, which cancels in the ratio.

    Args:
        mutation: Share of the values that is replaced in the rows of the background model.

    Reference: Ren et al., Likelihood Ratios for Out-of-Distribution Detection, arXiv:1906.02845.
    """

    name: ClassVar[str] = "likelihood_ratio"
    requires: ClassVar[frozenset[Requirement]] = frozenset({"background"})

    mutation: Fraction = 0.2

    def statistics(self, networks: Networks, X: Tensor) -> Tensor:
        """The difference in bits per dimension."""
        assert networks.background is not None
        nats = negative_elbo(networks.network, X) - negative_elbo(networks.background, X)
        return bits_per_dimension(nats, X)[:, None]


class InputComplexity(Score):
    r"""$\mathrm{bpd}(x) - L(x)$ with $L$ the length of the image as a PNG file, both in bits per dimension.

    Both count the bits of pixels with 256 levels: $\log_2 255$ is added to a density over intensities in [0, 1]. Cost:
    one forward pass, and the compression of each image. Fails: on noise, which cannot be compressed and so looks
    normal, and on novel images that are as complex as normal ones. For images only.

    Reference: Serrà et al., Input Complexity and Out-of-Distribution Detection with Likelihood-Based Generative Models,
    arXiv:1909.11480.
    """

    name: ClassVar[str] = "complexity"
    images_only: ClassVar[bool] = True

    def statistics(self, networks: Networks, X: Tensor) -> Tensor:
        """The difference in bits per dimension."""
        pixels = (255 * X).round().clamp(0, 255).byte().permute(0, 2, 3, 1).cpu().numpy()
        lengths = np.array([8 * png_bytes(image) / image.size for image in pixels], dtype=np.float32)
        model = bits_per_dimension(negative_elbo(networks.network, X), X) + np.log2(255)
        return (model - torch.from_numpy(lengths).to(X.device))[:, None]


def png_bytes(image: NDArray[np.uint8]) -> int:
    """Length of an image ``(h, w, c)`` as a PNG file; unless there are three, channels are stacked vertically."""
    height, width, channels = image.shape
    flat = image if channels == 3 else image.transpose(2, 0, 1).reshape(channels * height, width)
    file = io.BytesIO()
    Image.fromarray(flat).save(file, "png")
    return file.tell()
