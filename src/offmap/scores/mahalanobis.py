"""Mahalanobis distances of features to the known classes."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from offmap.class_statistics import class_means
from offmap.scores.gaussian import Gaussians, shrinkage_of
from offmap.scores.score import Outputs, Score, features_of, unit


@dataclass(kw_only=True, eq=False, repr=False)
class Mahalanobis(Score):
    r"""Scores each row by its squared Mahalanobis distance to the nearest class mean.

    $$\min_c (z - \mu_c)^\top \Sigma^{-1} (z - \mu_c)$$

    with one covariance $\Sigma$ within classes, shrunk as Ledoit and Wolf do.

    Args:
        normalise: Whether features are scaled to unit length first ("Mahalanobis++").

    Attributes:
        means_: The mean of each class.
        factor_: A matrix $F$ with $F F^\top = \Sigma^{-1}$.

    Reference: Lee et al., A Simple Unified Framework for Detecting Out-of-Distribution Samples, 2018; Mueller and Hein,
    Mahalanobis++, 2025.

    Example:
        >>> rows = torch.tensor([[0.0], [2.0], [9.0], [11.0]])
        >>> score = Mahalanobis().fit(Outputs(features=rows), torch.tensor([0, 0, 1, 1]))
        >>> score.novelty(Outputs(features=torch.tensor([[1.0], [13.0]])))
        tensor([0., 9.], dtype=torch.float64)
    """

    needs_labels: ClassVar[bool] = True

    normalise: bool = False

    def _fit(self, known: Outputs, codes: Tensor | None) -> None:
        fitted = Gaussians.fit(self._rows(known), codes)
        self.means_, self.factor_ = fitted.means, fitted.factor

    def _novelty(self, outputs: Outputs) -> Tensor:
        return Gaussians(self.means_, self.factor_).distance(self._rows(outputs))

    def _rows(self, outputs: Outputs) -> Tensor:
        return unit(features_of(outputs)) if self.normalise else features_of(outputs)


@dataclass(kw_only=True, eq=False, repr=False)
class RelativeMahalanobis(Score):
    r"""Scores each row by how much farther it is from its nearest class than from all known rows together.

    The squared Mahalanobis distance to the nearest class minus that to one Gaussian of all rows. Both covariances are
    shrunk by the same share: with few classes, two different shares would outweigh the difference.

    Attributes:
        means_: The mean of each class.
        factor_: The factor of the inverse covariance within classes.
        mean_: The mean of all rows.
        background_: The factor of the inverse covariance of all rows.

    Reference: Ren et al., A Simple Fix to Mahalanobis Distance for Improving Near-OOD Detection, 2021, equation 3.

    Example:
        >>> rows = torch.tensor([[0.0], [2.0], [9.0], [11.0]])
        >>> score = RelativeMahalanobis().fit(Outputs(features=rows), torch.tensor([0, 0, 1, 1]))
        >>> between, known = score.novelty(Outputs(features=torch.tensor([[5.5], [1.0]])))
        >>> bool(between > known)
        True
    """

    needs_labels: ClassVar[bool] = True

    def _fit(self, known: Outputs, codes: Tensor | None) -> None:
        assert codes is not None
        rows = features_of(known)
        share = shrinkage_of((rows - class_means(rows, codes)[codes]).numpy())
        within, background = Gaussians.fit(rows, codes, share), Gaussians.fit(rows, None, share)
        self.means_, self.factor_ = within.means, within.factor
        self.mean_, self.background_ = background.means, background.factor

    def _novelty(self, outputs: Outputs) -> Tensor:
        rows = features_of(outputs)
        within = Gaussians(self.means_, self.factor_).distance(rows)
        # Infinite rows are infinitely far from both, and their difference is not a number.
        return torch.nan_to_num(within - Gaussians(self.mean_, self.background_).distance(rows), nan=torch.inf)
