"""Image statistics of the picture and of its reconstruction error, compared with held-out normal images."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from offmap.density.image_statistics import (
    brightness_by_place,
    energy_by_place,
    histograms,
    residual_size,
    tone_and_detail,
)
from offmap.density.reference_distance import LocalDistanceRatio, NormalScores
from offmap.density.vae.scores.path import path_norms
from offmap.density.vae.scores.score import Networks, NoveltyFunction, Requirement, Score, Statistics


class Texture(Score):
    r"""How unusual the statistics of an image and of its reconstruction residual are among held-out normal images.

    There are three groups of statistics. The model's: the norms of "lpath", the divergence, and brightness, contrast,
    colour and detail by scale of the residual. The image's: the same of its pixels, and their histograms. The third
    group is both of these, and brightness and residual by place. In each group statistics become decorrelated normal
    scores, and an image's distance to its nearest held-out images is divided by their distance to their neighbours. The
    novelty is the sum over the groups; too little of anything counts as much as too much. Cost: one forward pass, and
    three matrices of distances. Fails: on images that differ in content alone, as two sets of photographs do, and on
    blends of two images. ``TextureDetector`` uses the image's own statistics alone and trains no network.
    """

    name: ClassVar[str] = "texture"
    requires: ClassVar[frozenset[Requirement]] = frozenset({"held_out"})
    images_only: ClassVar[bool] = True

    def statistics(self, networks: Networks, X: Tensor) -> Tensor:
        """The model's statistics, the image's, and those by place, side by side."""
        expected, posterior = networks.network.reconstruct(X)
        residual = X - expected
        model = [path_norms(residual, posterior), posterior.kl()[:, None], residual_size(residual)]
        image = [tone_and_detail(X), histograms(X)]
        by_place = [brightness_by_place(X), energy_by_place(residual)]
        return torch.cat([*model, tone_and_detail(residual), *image, *by_place], dim=1)

    def novelty_function(self, reference: Statistics) -> NoveltyFunction:
        """The sum over the groups."""
        # Every part has a fixed width but tone and detail, which are there twice and depend on the channels.
        width = (reference.shape[1] - _FIXED) // 2
        model, image = slice(0, _MODEL + width), slice(_MODEL + width, _MODEL + 2 * width + _HISTOGRAMS)
        groups = (slice(None), model, image)
        ranks = NormalScores.fit(reference)
        scores = ranks(torch.from_numpy(reference))
        return _Sum(ranks, groups, tuple(LocalDistanceRatio.fit(scores[:, group]) for group in groups))


@dataclass(frozen=True)
class _Sum:
    ranks: NormalScores
    groups: tuple[slice, ...]
    ratios: tuple[LocalDistanceRatio, ...]

    def __call__(self, statistics: Tensor) -> Tensor:
        scores = self.ranks(statistics)
        found = [ratio(scores[:, group]) for group, ratio in zip(self.groups, self.ratios, strict=True)]
        return torch.stack(found).sum(0)


# Columns of the model's statistics, of the histograms and of those by place, without tone and detail.
_MODEL, _HISTOGRAMS, _BY_PLACE = 6, 15, 32
_FIXED = _MODEL + _HISTOGRAMS + _BY_PLACE
