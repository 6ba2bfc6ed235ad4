"""The parts of the closed form: rotated features, a linear ratio, and a solver that keeps a running mean."""

import torch
from torch import Tensor, nn

from offmap.collaborative.blend import FEW, blend
from offmap.collaborative.entities import Columns, EntityTable
from offmap.collaborative.features import RangePenalty
from offmap.collaborative.gram import Gram, log_ratio
from offmap.collaborative.observations import Observations
from offmap.collaborative.parts import Head, PairHead, StreamSolver
from offmap.collaborative.scoring import CHUNK, all_features


class ClosedFormFeatures(nn.Module):
    """Features that are centred and rotated, and one more: the penalty of a row far outside the training rows.

    Args:
        raw: Maps rows to features.
        gram: Mean and covariance of these over all rows.
        penalty: The penalty.
    """

    def __init__(self, raw: nn.Module, gram: Gram, penalty: RangePenalty) -> None:
        super().__init__()
        self.raw, self.gram, self.penalty = raw, gram, penalty

    def forward(self, X: Tensor) -> Tensor:
        """The features of rows, and at last their penalty."""
        return self.finish(self.raw(X), X)

    def finish(self, raw: Tensor, X: Tensor) -> Tensor:
        """The same from raw features that are known already."""
        return torch.cat([self.gram.rotate(raw), self.penalty(X).unsqueeze(1)], dim=1)

    def fit(self, observed: Observations) -> Tensor:
        """Measures all rows once their raw features are learnt; returns the raw features."""
        self.penalty.fit(observed.X)
        raw = all_features(self.raw, observed.X)
        self.gram.fit(raw, observed.weights)
        return raw

    def finish_all(self, raw: Tensor, X: Tensor) -> Tensor:
        """As ``finish``, chunk by chunk: the bytes that scoring these rows would give."""
        return torch.cat([self.finish(*part) for part in zip(raw.split(CHUNK), X.split(CHUNK), strict=True)])


class LinearRatioHead(PairHead):
    r"""The log of the ratio $1 + \langle \varphi(x), w \rangle$, less the penalty in the last feature."""

    def forward(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """The log ratio of each row for the entity beside it."""
        return log_ratio(1 + (features[..., :-1] * embeddings).sum(dim=-1)) - features[..., -1]

    def score_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """The log ratio of every row for every entity, as a matrix."""
        return log_ratio(1 + features[:, :-1] @ embeddings.T) - features[:, -1:]


class ClosedFormSolver(StreamSolver):
    """Solves for the weights of an entity from the mean of its features, which the table keeps.

    Args:
        gram: Covariance of the features, and the ridge.
        n_neighbors: Entities that one with few rows is blended with.
    """

    draws = False

    def __init__(self, gram: Gram, n_neighbors: int) -> None:
        super().__init__()
        self.gram, self.n_neighbors = gram, n_neighbors
        self.extra_columns = {"mean": len(gram.mean)}

    def embed(self, head: Head, features: Tensor, observed: Observations, table: EntityTable) -> Columns:
        """Mean and weights of new entities."""
        mean = observed.entity_means(features[:, :-1])
        return {"mean": mean, "embedding": self._solve(mean, observed.counts, table)}

    def update(
        self, head: Head, features: Tensor, observed: Observations, table: EntityTable, places: Tensor
    ) -> Columns:
        """Mean and weights of known entities after more rows."""
        total = table.counts[places] + observed.counts
        old = table.column("mean")[places]
        mean = old + (observed.counts / total).unsqueeze(1) * (observed.entity_means(features[:, :-1]) - old)
        return {"mean": mean, "embedding": self._solve(mean, total, table)}

    def _solve(self, means: Tensor, counts: Tensor, table: EntityTable) -> Tensor:
        """The weights of entities; those with few rows are blended with their neighbours in the table."""
        weights = self.gram.solve(means, counts)
        if self.n_neighbors and bool((counts < FEW).any()):
            return blend(weights, counts, table.column("embedding")[table.counts >= FEW], self.n_neighbors)
        return weights
