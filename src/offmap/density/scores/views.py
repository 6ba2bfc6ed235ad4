"""Images in several views, none of which alone is enough."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from offmap.density.scores.held_out import LocalRatio, NormalScores
from offmap.density.scores.path import norms
from offmap.density.scores.score import Judge, Models, Part, Score, Statistics
from offmap.density.scores.texture import levels, places, shares, sizes


class Views(Score):
    r"""How odd an image is among held-out normal ones: as the model sees it, as it is, and in all at once.

    The model's view is the three norms of ``lpath``, the divergence, and the brightness, contrast, colour and energy by
    scale of what it left unexplained. The image's own view is the same of its pixels, and how they are spread. The
    third view is both and where on the image things are. In each, statistics become normal scores by their ranks, which
    are decorrelated, and the image is compared with its nearest held-out neighbours as those are with theirs; the
    novelty is the sum of the three. Too little of anything is as odd as too much. Cost: one pass, and three small
    tables of distances. Fails: where images differ in meaning alone, as two sets of photographs do, and on blends.
    """

    needs: ClassVar[frozenset[Part]] = frozenset({"held_out"})
    images_only: ClassVar[bool] = True

    def statistics(self, models: Models, X: Tensor) -> Tensor:
        """The model's view, the image's own, and the places, side by side."""
        expected, posterior = models.network.reconstruct(X)
        residual = X - expected
        model = [norms(residual, posterior), posterior.kl()[:, None], sizes(residual), levels(residual)]
        return torch.cat([*model, levels(X), shares(X), places(X, residual)], dim=1)

    def judge(self, normal: Statistics) -> Judge:
        """The sum over the views."""
        # All is of a fixed width but the levels, which are there twice and grow with the channels.
        width = (normal.shape[1] - _FIXED) // 2
        model, image = slice(0, _MODEL + width), slice(_MODEL + width, _MODEL + 2 * width + _SHARES)
        views = (slice(None), model, image)
        ranks = NormalScores.fit(normal)
        scores = ranks(torch.from_numpy(normal))
        return _Sum(ranks, views, tuple(LocalRatio.fit(scores[:, view]) for view in views))


@dataclass(frozen=True)
class _Sum:
    ranks: NormalScores
    views: tuple[slice, ...]
    judges: tuple[LocalRatio, ...]

    def __call__(self, statistics: Tensor) -> Tensor:
        scores = self.ranks(statistics)
        found = [judge(scores[:, view]) for view, judge in zip(self.views, self.judges, strict=True)]
        return torch.stack(found).sum(0)


# Columns of the model's view, of the spread of the pixels and of the places, without the levels.
_MODEL, _SHARES, _PLACES = 6, 15, 32
_FIXED = _MODEL + _SHARES + _PLACES
