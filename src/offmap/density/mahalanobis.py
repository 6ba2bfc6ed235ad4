"""The Mahalanobis distance to the mean of the normal rows."""

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass
from math import prod
from typing import Self, final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from offmap.arrays import FloatArray, in_chunks
from offmap.base import Detector
from offmap.calibration.cv import require_one_model
from offmap.density.moments import Moments
from offmap.nets import Standardise
from offmap.scores.gaussian import Gaussians


@final
@dataclass(kw_only=True, eq=False, repr=False)
class MahalanobisDetector(Detector):
    r"""Flags rows far from the mean of the normal rows, in units of how the features vary together.

    The novelty is the squared distance $(z - \mu)^\top \Sigma^{-1} (z - \mu)$ of the standardised row $z$, with Ledoit
    and Wolf's shrunk covariance, which also works with fewer rows than features. It is a sum over features, and sees
    when features are normal alone and unusual together. Rows that form several clusters need
    ``GaussianMixtureDetector`` or ``NearestNeighborDetector``.

    Attributes:
        scaler_: Mean and standard deviation of each feature, a ``torch.nn.Module``.
        mean_: The mean $\mu$ of the standardised rows.
        factor_: A matrix $F$ with $F F^\top = \Sigma^{-1}$.
        history_: Empty: nothing is trained.
        promise_: The ``Promise`` that decides, fitted on the calibration rows.
        threshold_: Rows with a novelty above it are flagged.
        calibration_novelty_: Novelty of the calibration rows, in ascending order.
        input_shape_: Shape of one row.

    Reference: Mahalanobis, On the Generalised Distance in Statistics, 1936.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(500, 1))
        >>> X = np.hstack([x, x + rng.normal(scale=0.1, size=(500, 1))])
        >>> MahalanobisDetector(random_state=0).fit(X).predict([[1.0, 1.0], [1.0, -1.0]])
        array([ 1, -1])
    """

    def contributions(self, X: ArrayLike) -> FloatArray:
        r"""The share of each feature in the novelty of each row; over a row they sum to its novelty.

        Feature $j$ contributes $(z - \mu)_j\, (\Sigma^{-1} (z - \mu))_j$, which is its Shapley value: what replacing
        it by its mean changes, averaged over all orders of replacing the features. It may be negative.

        Args:
            X: Rows of finite values.

        Reference: Mayrhofer and Filzmoser, Multivariate outlier explanations using Shapley values and Mahalanobis
        distances, Econometrics and Statistics, 2023.
        """
        require_one_model(self, "contributions")
        (scaled,) = in_chunks(lambda part: (self.scaler_(part),), self._checked(X), self.device)
        centred = scaled.astype(np.float64) - self.mean_.double().numpy()
        return centred * (centred @ self.precision_.double().numpy())

    def fit_shard(self, X: ArrayLike) -> Self:
        """Fits a part of the rows and keeps the sums that ``offmap.scale.merge`` adds, over all rows of the part.

        They are three matrices of features × features, in ``moments_``.

        Args:
            X: Normal rows.
        """
        if self.contamination:
            raise ValueError("fit_shard adds all rows of X; leave out novel rows before, and contamination at 0")
        self.fit(X)
        if self._members() or hasattr(self, "encoder_"):
            raise ValueError('fit_shard needs rows of numbers and calibration as a share, not "cv"; encode X before')
        self.moments_ = asdict(Moments.of(self._checked(X).astype(np.float32)))
        return self

    def merged_with(self, others: Sequence[Self]) -> Self:
        """The model of the rows of this shard and of others, without a threshold; ``offmap.scale.merge`` sets one."""
        models: list[Self] = [self, *others]
        if not all(hasattr(model, "moments_") for model in models):
            raise ValueError("models must be fitted by fit_shard, which keeps the sums that are added")
        first, *rest = (Moments(**model.moments_) for model in models)
        moments = first.joined(*rest)
        merged = copy(self)
        merged._build()
        spread = np.sqrt(np.diag(moments.second) / moments.count)
        merged.scaler_.set(torch.from_numpy(moments.mean), torch.from_numpy(spread))
        centre, scale = (part.double().cpu().numpy() for part in (merged.scaler_.mean, merged.scaler_.scale))
        mean = torch.from_numpy((moments.mean - centre) / scale)
        found = Gaussians.of(mean[None], moments.covariance(scale), moments.shrinkage(scale))
        merged.mean_, merged.factor_, merged.moments_ = found.means[0], found.factor, asdict(moments)
        return merged

    def _fit(self, X: Tensor) -> None:
        self._build()
        self.scaler_.fit(X)
        fitted = Gaussians.fit(self.scaler_(X).cpu())
        self.mean_, self.factor_ = fitted.means[0], fitted.factor

    def _build(self) -> None:
        self.scaler_ = Standardise(prod(self.input_shape_)).to(self.device)

    def _novelty(self, X: Tensor) -> Tensor:
        return Gaussians(self.mean_[None], self.factor_).distance(self.scaler_(X).cpu())

    @property
    def precision_(self) -> Tensor:
        r"""The inverse covariance $\Sigma^{-1}$ of the standardised features."""
        return Gaussians(self.mean_[None], self.factor_).precision
