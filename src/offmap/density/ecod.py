"""Empirical tail probabilities as a detector."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from offmap.base import Detector


@final
@dataclass(kw_only=True, eq=False, repr=False)
class ECODDetector(Detector):
    r"""Flags rows with features in the tails of the normal rows' distributions; it has no parameters to tune.

    Each feature has a left and a right tail probability among the $n$ training rows,

    $$L_j = \frac{1 + \#\{i : x_{ij} \le x_j\}}{n + 1}, \qquad R_j = \frac{1 + \#\{i : x_{ij} \ge x_j\}}{n + 1}.$$

    The novelty is the largest of $-\sum_j \log L_j$, $-\sum_j \log R_j$, and the same sum with the tail that its
    skewness points to. Features count one by one: rows that are unusual only in how features go together are
    missed, see ``MahalanobisDetector``; and no feature counts more beyond the largest training value than at it.

    Attributes:
        values_: The training values of each feature in ascending order, one row per feature.
        left_: Whether the left tail of each feature is the long one.
        history_: Empty: nothing is trained.
        promise_: The ``Promise`` that decides, fitted on the calibration rows.
        threshold_: Rows with a novelty above it are flagged.
        calibration_novelty_: Novelty of the calibration rows, in ascending order.
        input_shape_: Shape of one row.

    Reference: Li et al., ECOD: Unsupervised Outlier Detection Using Empirical Cumulative Distribution Functions,
    arXiv:2201.00382, algorithm 1.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> ECODDetector(random_state=0).fit(X).predict([[0.0, 0.1, -0.2], [4.0, 4.0, 4.0]])
        array([ 1, -1])
    """

    def _fit(self, X: Tensor) -> None:
        precise = X.double()
        centred = precise - precise.mean(dim=0)
        self.left_ = centred.pow(3).mean(dim=0) < 0
        self.values_ = X.T.contiguous().sort(dim=1).values

    def _novelty(self, X: Tensor) -> Tensor:
        count, found = self.values_.shape[1], X.T.contiguous()
        at_most = torch.searchsorted(self.values_.to(X.device), found, right=True)
        below = torch.searchsorted(self.values_.to(X.device), found)
        left, right = (-((1 + tail).double() / (count + 1)).log() for tail in (at_most, count - below))
        skewed = torch.where(self.left_.to(X.device)[:, None], left, right)
        return torch.stack([part.sum(dim=0) for part in (left, right, skewed)]).amax(dim=0)
