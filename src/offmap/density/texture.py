"""Image statistics, compared with those of normal images, as a detector."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from offmap.base import Detector
from offmap.density.image_statistics import brightness_by_place, histograms, tone_and_detail
from offmap.density.reference_distance import LocalDistanceRatio, NormalScores
from offmap.parameters import Count


@final
@dataclass(kw_only=True, eq=False, repr=False)
class TextureDetector(Detector):
    r"""Flags images whose brightness, contrast, colour or detail is unlike that of the most similar normal images.

    Each image is described by some forty statistics (more in colour): mean and variance per channel, the energy of
    detail at three scales, histograms of pixels and of steps between neighbouring pixels, and brightness on a 4×4 grid.
    They are turned into normal scores by their ranks among normal images and decorrelated. The novelty is the distance
    to the nearest normal images, divided by the distance of those to their own neighbours, as a normal score. A good
    first choice for images of at least 16 × 16 pixels: it trains no network. It fails on images that differ in content
    alone, such as two sets of photographs. Rows that are not images are described by their features.

    Args:
        n_neighbors: How many of the nearest normal images count.
        max_reference: Training images to compare with, drawn at random; more are slower and a little more accurate.

    Attributes:
        reference_statistics_: Statistics of the images that are compared with, one row per image.
        history_: Empty: nothing is trained.
        promise_: The ``Promise`` that decides, fitted on the calibration rows.
        threshold_: Rows with a novelty above it are flagged.
        calibration_novelty_: Novelty of the calibration rows, in ascending order.
        input_shape_: Shape of one row.

    Reference: Breunig et al., LOF: Identifying Density-Based Local Outliers, SIGMOD 2000.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> digits = load_digits().images / 16
        >>> detector = TextureDetector(random_state=0).fit(digits[:1000])
        >>> negatives = 1 - digits[1000:]
        >>> float((detector.predict(negatives) == -1).mean())
        1.0
    """

    spatial: ClassVar[bool] = True

    n_neighbors: Count = 10
    max_reference: Count = 5_000

    def _fit(self, X: Tensor) -> None:
        chosen = X[torch.randperm(len(X))[: self.max_reference].to(X.device)]
        parts = [_statistics(some) for some in chosen.split(256)]
        self.reference_statistics_ = torch.cat(parts).double().cpu().numpy()
        self._build()

    def _build(self) -> None:
        self._ranks = NormalScores.fit(self.reference_statistics_)
        scores = self._ranks(torch.from_numpy(self.reference_statistics_))
        self._ratio = LocalDistanceRatio.fit(scores, self.n_neighbors, skip_self=True)

    def _novelty(self, X: Tensor) -> Tensor:
        return self._ratio(self._ranks(_statistics(X).cpu()))

    def _row_width(self) -> int:
        return len(self.reference_statistics_)


def _statistics(X: Tensor) -> Tensor:
    """The statistics of each image ``(n, c, h, w)``; those of other rows are their features."""
    if X.ndim == 2:
        return X
    return torch.cat([tone_and_detail(X), histograms(X), brightness_by_place(X)], dim=1)
