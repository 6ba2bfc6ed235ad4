"""The distance to the nearest training rows as a detector."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from math import prod
from typing import Self, final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from offmap.arrays import FloatArray, in_chunks
from offmap.base import Detector
from offmap.calibration.cv import require_one_model
from offmap.density.neighbor_distance import NeighborDistance
from offmap.nets import Standardise
from offmap.parameters import Count


@final
@dataclass(kw_only=True, eq=False, repr=False)
class NearestNeighborDetector(Detector):
    r"""Flags rows that are far from the nearest normal rows.

    The novelty of a row is its mean distance to the $k$ nearest training rows, divided by the mean of that distance
    over the training rows: 1 is typical, 3 is three times as far. Features are standardised first; pixels are not. A
    good first choice for tables and small images: it trains nothing, and detects rows in the gaps between clusters.
    Distances between large images say little, since a shift by one pixel is farther than another picture; see
    ``TextureDetector``.

    Args:
        n_neighbors: How many neighbours count. Increase it if the training rows may contain outliers.

    Attributes:
        scaler_: Mean and standard deviation of each feature, a ``torch.nn.Module``; 0 and 1 for images.
        rows_: The standardised training rows.
        history_: Empty: nothing is trained.
        promise_: The ``Promise`` that decides, fitted on the calibration rows.
        threshold_: Rows with a novelty above it are flagged.
        calibration_novelty_: Novelty of the calibration rows, in ascending order.
        input_shape_: Shape of one row.

    Reference: Ramaswamy, Rastogi and Shim, Efficient Algorithms for Mining Outliers from Large Data Sets, SIGMOD 2000.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> detector = NearestNeighborDetector(random_state=0).fit(X)
        >>> detector.predict([[0.0, 0.1, -0.2], [30.0, 30.0, 30.0]])
        array([ 1, -1])
    """

    n_neighbors: Count = 3

    def contributions(self, X: ArrayLike) -> FloatArray:
        """The share of each feature in the novelty of each row; over a row they sum to its novelty.

        Args:
            X: Rows of finite values; the pixels of an image are its features.
        """
        require_one_model(self, "contributions")
        rows = self._checked(X)
        (scaled,) = in_chunks(lambda part: (self.scaler_(part),), rows, self.device)
        return self._distance.contributions(scaled.astype(np.float64))

    def merged_with(self, others: Sequence[Self]) -> Self:
        """The model of the training rows of this model and of others; ``offmap.scale.merge`` sets its threshold."""
        models: list[Self] = [self, *others]
        merged, rows = copy(self), np.concatenate([model._training_rows() for model in models])
        merged._fit(torch.from_numpy(rows).float().to(self.device))
        return merged

    def _training_rows(self) -> FloatArray:
        mean, scale = (part.double().cpu().numpy() for part in (self.scaler_.mean, self.scaler_.scale))
        return self.rows_ * scale + mean

    def _fit(self, X: Tensor) -> None:
        # What an earlier fit left would be indexed for nothing.
        self.__dict__.pop("rows_", None)
        self._build()
        if len(self.input_shape_) == 1:
            self.scaler_.fit(X)
        self.rows_ = self.scaler_(X).double().cpu().numpy()
        self._distance = NeighborDistance.fit(self.rows_, self.n_neighbors)

    def _build(self) -> None:
        self.scaler_ = Standardise(prod(self.input_shape_)).to(self.device)
        if hasattr(self, "rows_"):
            self._distance = NeighborDistance.fit(self.rows_, self.n_neighbors)

    def _novelty(self, X: Tensor) -> Tensor:
        return self._measured(X)

    def novelty_of_new(self, X: ArrayLike) -> FloatArray:
        """The novelty of rows that did not train the model, even if they equal rows that did.

        ``novelty`` takes such a row for the training row itself, which is not its own neighbour, but a change of it has
        the training row as a neighbour: only as new rows can they be compared.
        """
        if members := self._members():
            return self._surprise([member.novelty_of_new(X) for member in members])
        return self._scored(lambda rows: self._measured(rows, new=True), self._checked(X))

    def _measured(self, X: Tensor, *, new: bool = False) -> Tensor:
        return torch.from_numpy(self._distance(self.scaler_(X).double().cpu().numpy(), new=new))
