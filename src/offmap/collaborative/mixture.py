r"""Density ratios of mixtures: entities differ in how often they show each of some components that all share.

If the rows of entity $t$ come from $K$ shared components with shares $w_{tk}$, and those of all entities with shares
$\pi_k$, then the ratio of the two densities is

$$\frac{q_t(x)}{p(x)} = \sum_k \frac{w_{tk}}{\pi_k} \, \psi_k(x),$$

where $\psi_k(x)$ is the probability of component $k$ given the row, whatever the entity. A network learns $\psi$. The
shares of an entity follow from its rows, as the posterior mean under a prior that is worth $\kappa$ rows:

$$w_t = \frac{\sum_{x \in t} \psi(x) + \kappa \pi}{n_t + \kappa}.$$

New entities and those that were fitted are thus found in the same way, and a stream ends where one batch would.

Far outside the training rows a network may say anything. There no component has its whole probability: what is missing
is that of rows that no entity has shown.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from offmap.collaborative.entities import Columns, EntityTable
from offmap.collaborative.features import RangePenalty
from offmap.collaborative.networks import RowNetwork, perceptron
from offmap.collaborative.observations import Observations
from offmap.collaborative.parts import Head, PairHead, StreamSolver
from offmap.nets.steady import Linear

# Rows that the prior is worth before it is learnt, and the least share of a row's probability that is left.
_FIRST_WORTH, _LEAST = 10.0, 1e-30


class ComponentFeatures(nn.Module):
    """Features for a ``MixtureHead``: the probabilities of components, which vanish far outside the training rows.

    Args:
        body: Prepares rows.
        components: Number of components.
        hidden: Widths of the hidden layers.
        dropout: Dropout after each hidden layer.
        penalty: The log of what is lost outside.
    """

    def __init__(
        self,
        body: RowNetwork,
        components: int,
        hidden: Sequence[int],
        dropout: float | Sequence[float],
        penalty: RangePenalty,
    ) -> None:
        super().__init__()
        widths = (body.outputs, *hidden)
        self.body, self.penalty = body, penalty
        self.tower = nn.Sequential(perceptron(widths, dropout), Linear(widths[-1], components), nn.Softmax(dim=1))

    def fit(self, X: Tensor) -> None:
        """Measures the training rows, before the network learns."""
        self.body.fit(X)
        self.penalty.fit(X)

    def forward(self, X: Tensor) -> Tensor:
        """One probability per row and component; they sum to 1 within reach of the training rows."""
        within = (-self.penalty(X)).exp().clamp(min=_LEAST)
        return self.tower(self.body(X)) * within.unsqueeze(1)


class MixtureHead(PairHead):
    r"""The log ratio $\log \sum_k \psi_k(x) \, w_k / \pi_k$; an embedding is $w / \pi$.

    Args:
        components: Number of components.
    """

    def __init__(self, components: int) -> None:
        super().__init__()
        self.prior = nn.Parameter(torch.zeros(components))
        self.log_worth = nn.Parameter(torch.tensor(_FIRST_WORTH).log())

    def forward(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """The log ratio of each row for the entity beside it."""
        return (features * embeddings).sum(dim=-1).log()

    def score_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """The log ratio of every row for every entity, as a matrix."""
        return (features @ embeddings.T).log()

    def embeddings(self, sums: Tensor, counts: Tensor) -> Tensor:
        """The embeddings of entities.

        Args:
            sums: Sum of the features over the rows of each entity.
            counts: Number of rows of each.
        """
        worth = self.log_worth.exp()
        return (sums / self.prior.softmax(dim=0) + worth) / (counts.unsqueeze(1) + worth)

    def with_rows(self, embeddings: Tensor, before: Tensor, sums: Tensor, counts: Tensor) -> Tensor:
        """The embeddings of entities that were learnt from ``before`` rows and get more."""
        worth = before.unsqueeze(1) + self.log_worth.exp()
        return (sums / self.prior.softmax(dim=0) + worth * embeddings) / (counts.unsqueeze(1) + worth)


class MixtureSolver(StreamSolver):
    """Finds the shares of entities from the features of their rows."""

    draws = False

    def embed(self, head: Head, features: Tensor, observed: Observations, table: EntityTable) -> Columns:
        """The embedding of new entities."""
        assert isinstance(head, MixtureHead)
        return {"embedding": head.embeddings(*feature_sums(features, observed))}

    def update(
        self, head: Head, features: Tensor, observed: Observations, table: EntityTable, places: Tensor
    ) -> Columns:
        """The embedding of known entities after more rows: that of all their rows together."""
        assert isinstance(head, MixtureHead)
        known, before = table.column("embedding")[places], table.counts[places]
        return {"embedding": head.with_rows(known, before, *feature_sums(features, observed))}


def feature_sums(features: Tensor, observed: Observations) -> tuple[Tensor, Tensor]:
    """The sum of the features of each entity's rows, and their number."""
    counts = observed.counts
    return observed.entity_means(features) * counts.unsqueeze(1), counts
