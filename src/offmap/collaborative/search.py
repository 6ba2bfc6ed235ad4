"""Embeddings for heads that are networks: searched for by gradient steps under a normal prior."""

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.optim import Adam

from offmap.collaborative.entities import Columns, EntityTable
from offmap.collaborative.observations import Observations
from offmap.collaborative.parts import Head, Known, StreamSolver
from offmap.collaborative.prior import DiagonalPrior, Prior
from offmap.ratio import ratio_loss
from offmap.train import Batch, Batches, descend, train

# Passes, and observations per step, to the embedding of an entity.
_PASSES, _BATCH = 60, 4096


class SearchSolver(StreamSolver):
    """Finds the embeddings of lowest loss under a prior by Adam, while the networks stay as they are.

    The curvature of a network is costly to compute. What is known of an entity therefore counts as if the prior were
    worth one row.

    Args:
        size: Width of an embedding.
        independent: Whether the prior takes the numbers of an embedding for independent, as very wide ones need.
    """

    def __init__(self, size: int, independent: bool = False) -> None:
        super().__init__()
        self.prior: Prior | DiagonalPrior = DiagonalPrior(size) if independent else Prior(size)

    @abstractmethod
    def loss(self, head: Head, features: Tensor, embeddings: Tensor) -> Tensor:
        """The mean loss of rows under the embeddings of their entities."""

    def embed(self, head: Head, features: Tensor, observed: Observations, table: EntityTable) -> Columns:
        """The embedding of new entities."""
        return {"embedding": self._search(head, features, observed, None)}

    def update(
        self, head: Head, features: Tensor, observed: Observations, table: EntityTable, places: Tensor
    ) -> Columns:
        """The embedding of known entities after more rows."""
        return {"embedding": self._search(head, features, observed, Known.at(table, places))}

    def _search(self, head: Head, features: Tensor, observed: Observations, known: Known | None) -> Tensor:
        prior, counts = self.prior, observed.counts.to(features.dtype)
        start = prior.mean.new_zeros(len(counts), len(prior.mean)) if known is None else prior.points(known.embeddings)
        worth = torch.ones_like(start[:, 0]) if known is None else 1 + known.counts
        points = nn.Embedding.from_pretrained(start.clone(), freeze=False)
        optimizer = Adam(points.parameters(), lr=0.1)

        def terms(batch: Batch) -> dict[str, Tensor]:
            index, entities = batch
            found = points(entities)
            away = 0.5 * ((found - start[entities]).square().sum(dim=1) * worth[entities] / counts[entities]).mean()
            return {"loss": self.loss(head, features[index], prior.embeddings(found)), "prior": away}

        batches = Batches((observed.index, observed.entities), _BATCH)
        with torch.enable_grad():
            train(descend(optimizer, terms), batches, epochs=_PASSES, state={"points": points}, label="new entities")
        return prior.embeddings(points.weight.detach())


class RatioSearch(SearchSolver):
    """Finds the embeddings under which own rows differ most from a sample of all rows.

    Args:
        size: Width of an embedding.
        sample: Number of rows of all entities to compare with.
        width: Width of the features of a row.
    """

    population: Tensor

    def __init__(self, size: int, sample: int, width: int) -> None:
        super().__init__(size)
        self.register_buffer("population", torch.zeros(sample, width))

    def prepare(self, population: Tensor, embeddings: Tensor) -> None:
        """Keeps the features of a sample of all rows, and fits the prior to embeddings that are known."""
        self.prior.fit(embeddings)
        self.population.copy_(population)

    def loss(self, head: Head, features: Tensor, embeddings: Tensor) -> Tensor:
        """The logistic loss against rows that are drawn from the sample."""
        others = self.population[torch.randint(len(self.population), (len(features),), device=features.device)]
        return ratio_loss(head(features, embeddings), head(others, embeddings))


class DensitySearch(SearchSolver):
    """Finds the embeddings under which own rows have the highest density."""

    def loss(self, head: Head, features: Tensor, embeddings: Tensor) -> Tensor:
        """Minus the mean log density."""
        return -head(features, embeddings).mean()
