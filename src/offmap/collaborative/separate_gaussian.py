"""A Gaussian per entity, with the mean and variance of the entity's own rows."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from offmap.collaborative.base import EntityDetector
from offmap.collaborative.entities import Columns, EntityTable
from offmap.collaborative.gaussian import gaussian_log_densities, gaussian_log_density
from offmap.collaborative.levels import merged
from offmap.collaborative.networks import flat_rows
from offmap.collaborative.observations import Observations
from offmap.collaborative.parts import Head, Learned, PairHead, StreamSolver
from offmap.collaborative.scoring import all_features

# Weight of the variance of all rows in that of an entity, in rows.
_PRIOR_ROWS = 10.0


class MomentsHead(PairHead):
    """Scores rows by a Gaussian whose mean and log variance are the embedding itself."""

    def forward(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """The log density of each row for the entity beside it."""
        return gaussian_log_density(features, embeddings)

    def score_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """The log density of every row for every entity, as a matrix."""
        return gaussian_log_densities(features, embeddings)


class MomentsSolver(StreamSolver):
    """Takes the mean and variance of an entity's rows; the variance is drawn towards that of all rows, which is 1."""

    draws = False

    def embed(self, head: Head, features: Tensor, observed: Observations, table: EntityTable) -> Columns:
        """The moments of new entities."""
        return {"embedding": self(features, observed)}

    def forward(self, features: Tensor, observed: Observations) -> Tensor:
        """Mean and log variance of the rows of each entity."""
        mean = observed.entity_means(features)
        variance = observed.entity_means(features.square()) - mean.square()
        return _described(mean, variance.clamp(min=0), observed.counts.unsqueeze(1))

    def update(
        self, head: Head, features: Tensor, observed: Observations, table: EntityTable, places: Tensor
    ) -> Columns:
        """The moments of old and new rows together."""
        before, counts = table.column("count")[places], observed.counts.unsqueeze(1)
        old, new = table.column("embedding")[places], self(features, observed)
        width = features.shape[1]
        mine = torch.stack([old[:, :width], _own_variance(old[:, width:], before)], dim=2).view(-1, 2)
        more = torch.stack([new[:, :width], _own_variance(new[:, width:], counts)], dim=2)
        sizes = [count.expand(-1, width).reshape(-1) for count in (before, counts)]
        both = merged(mine, sizes[0], more.view(-1, 2), sizes[1]).view(len(places), width, 2)
        return {"embedding": _described(both[..., 0], both[..., 1], before + counts)}


def _own_variance(log_variance: Tensor, counts: Tensor) -> Tensor:
    """The variance of an entity's own rows, before it was drawn to that of all rows."""
    return ((log_variance.exp() * (counts + _PRIOR_ROWS) - _PRIOR_ROWS) / counts).clamp(min=0)


def _described(mean: Tensor, variance: Tensor, counts: Tensor) -> Tensor:
    # Rows are standardised: the variance of all of them is 1.
    shrunk = (counts * variance + _PRIOR_ROWS) / (counts + _PRIOR_ROWS)
    return torch.cat([mean, shrunk.log()], dim=1)


@final
@dataclass(kw_only=True, eq=False, repr=False)
class SeparateGaussianDetector(EntityDetector):
    """Scores rows by their density under a Gaussian with the mean and variance of the entity's own rows.

    Features are standardised over all rows. The variance of an entity is drawn towards that of all rows, as if the
    entity had ten more rows like the others'. Nothing else is shared between entities; a stream gives the same moments
    as all rows at once.

    Attributes:
        centre_: Mean of the moments of the fitted entities.

    Reference: Bai et al., Collaborative Anomaly Detection, section 5.1.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> entities = np.repeat(np.arange(20), 50)
        >>> X = rng.normal(size=(1000, 2)) + np.stack([np.cos(entities), np.sin(entities)], axis=1) * 3
        >>> detector = SeparateGaussianDetector(random_state=0).fit(X, entities)
        >>> own, opposite = detector.novelty([[3.0, 0.0], [-3.0, 0.0]], [0, 0])
        >>> bool(own < opposite)
        True
    """

    spatial: ClassVar[bool] = True

    def _build_parts(self) -> None:
        self._use_parts(flat_rows(self.input_shape_), MomentsHead(), MomentsSolver())

    def _fit(self, observed: Observations, given: Tensor | None) -> Learned:
        self._use_parts(rows := flat_rows(self.input_shape_), MomentsHead(), solver := MomentsSolver())
        features = all_features(rows.fit(observed.X), observed.X)
        return Learned({"embedding": solver(features, observed)}, features)
