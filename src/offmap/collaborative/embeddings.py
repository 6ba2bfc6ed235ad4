"""First embeddings that are made of an entity's rows, and of more of its rows later in the same way."""

from typing import Literal

import torch
from torch import Tensor

from offmap.collaborative.entities import Columns, EntityTable
from offmap.collaborative.observations import Observations
from offmap.collaborative.parts import Head, Known, StreamSolver
from offmap.collaborative.row_values import Clusters, Labels, SeedRatios
from offmap.nets import Standardise

Embedding = Literal["random", "learned", "pseudo", "label", "histogram", "given"]
# The least share of the variance of means that is not put down to chance.
_LEAST_BETWEEN = 1e-3


class EntityMeans(StreamSolver):
    r"""Describes an entity by the mean of something known of each row, standardised over the fitted entities.

    Means differ little from entity to entity: without standardisation a network would take all entities for one.

    The mean of few rows is farther out than any entity is. With variances $v$ within entities and $b$ between them, the
    best guess for a new entity is $n / (n + v / b)$ times its mean: the other entities are worth $v / b$ rows.

    Args:
        values: What is known of each row.
    """

    worth: Tensor

    def __init__(self, values: Labels | Clusters | SeedRatios) -> None:
        super().__init__()
        self.values, self.standardise = values, Standardise(values.size)
        self.register_buffer("worth", torch.zeros(values.size))

    def fit(self, observed: Observations) -> None:
        """Takes means and variances over the entities of ``observed``."""
        values, counts = self.values(observed), observed.counts.unsqueeze(1)
        means = observed.entity_means(values)
        self.standardise.fit(means)
        squares = counts * (observed.entity_means(values.square()) - means.square()).clamp(min=0)
        within = squares.sum(dim=0) / (counts - 1).sum().clamp(min=1)
        spread = means.var(dim=0, correction=0)
        # Means differ by chance, too.
        between = (spread - within * (1 / counts).mean()).clamp(min=_LEAST_BETWEEN * spread + 1e-12)
        self.worth.copy_(within / between)

    def forward(self, observed: Observations) -> Tensor:
        """The vector that each entity starts from."""
        return self.standardise(observed.entity_means(self.values(observed)))

    def embed(self, head: Head, features: Tensor, observed: Observations, table: EntityTable) -> Columns:
        """The embedding of new entities."""
        count, size = len(observed.counts), len(self.worth)
        return {"embedding": self._moved(Known(features.new_zeros(count, size), features.new_zeros(count)), observed)}

    def update(
        self, head: Head, features: Tensor, observed: Observations, table: EntityTable, places: Tensor
    ) -> Columns:
        """The embedding of known entities after more rows."""
        return {"embedding": self._moved(Known.at(table, places), observed)}

    def _moved(self, known: Known, observed: Observations) -> Tensor:
        counts = observed.counts.unsqueeze(1)
        share = counts / (known.counts.unsqueeze(1) + self.worth + counts)
        return torch.lerp(known.embeddings, self(observed), share)


class OccurringLabels(StreamSolver):
    """Describes an entity by ones at the labels that occur among its rows.

    Args:
        labels: Number of labels.
    """

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.values = Labels(labels)

    def forward(self, observed: Observations) -> Tensor:
        """The vector that each entity starts from."""
        return (observed.entity_means(self.values(observed)) > 0).float()

    def embed(self, head: Head, features: Tensor, observed: Observations, table: EntityTable) -> Columns:
        """The embedding of new entities."""
        return {"embedding": self(observed)}

    def update(
        self, head: Head, features: Tensor, observed: Observations, table: EntityTable, places: Tensor
    ) -> Columns:
        """The embedding after more rows: labels that occurred stay, and so does what training made of the others."""
        occur, known = self(observed), table.column("embedding")[places]
        return {"embedding": torch.where(occur > 0, torch.maximum(occur, known), known)}
