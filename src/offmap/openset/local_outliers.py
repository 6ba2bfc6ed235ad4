"""The local outlier factor as a novelty score."""

from typing import Annotated, final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.neighbors import LocalOutlierFactor
from torch import Tensor

from offmap.arrays import start_of_equal_end
from offmap.parameters import Limit

Contamination = Annotated[float, Limit("above 0 and at most 0.5", lambda value: 0 < value <= 0.5)]


@final
class LocalOutliers:
    """Scores features by how much sparser their neighbourhood is than those of their nearest training features.

    Args:
        training_features: One row of features per training row.
        n_neighbors: Number of neighbours to compare with, or all other training rows if there are fewer.
        contamination: Share of the training rows that get a score above 0.
    """

    def __init__(self, training_features: NDArray[np.float64], n_neighbors: int, contamination: float) -> None:
        neighbors = min(n_neighbors, len(training_features) - 1)
        factor = LocalOutlierFactor(n_neighbors=neighbors, contamination=contamination, novelty=True)
        self._factor = factor.fit(training_features)

    def novelty(self, features: Tensor) -> Tensor:
        """Returns the local outlier factor less its quantile 1 - ``contamination`` over the training rows.

        Features that are not finite are infinitely novel.
        """
        values = features.double().cpu().numpy()
        finite = np.isfinite(values).all(axis=1)
        return torch.from_numpy(np.where(finite, -self._inlying(np.where(finite[:, None], values, 0.0)), np.inf))

    def _inlying(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows come in chunks of one size, filled up with equal rows: blocks of the search that hold only those are
        left out. A whole block is searched, because a part of one rounds differently.
        """
        last, block = start_of_equal_end(values), get_config()["pairwise_dist_chunk_size"]
        found = self._factor.decision_function(values[: (last // block + 1) * block])
        return np.concatenate([found, np.full(len(values) - len(found), found[last])])
