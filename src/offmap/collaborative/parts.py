"""The parts that an entity detector is composed of: features, a head and a solver.

- *Features* map rows to vectors, whatever the entity: any ``nn.Module``.
- A *head* scores a row's features against what describes an entity, its embedding.
- A *solver* finds the embedding of an entity from its rows, while features and head stay as they are.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from offmap.collaborative.entities import Columns, EntityTable
from offmap.collaborative.observations import Observations


class Head(nn.Module, ABC):
    """Scores how familiar rows are to entities; higher is more familiar."""

    # Whether the angle between two embeddings says how alike two entities are.
    comparable: ClassVar[bool] = True
    # Type of the numbers that describe an entity.
    dtype: ClassVar[torch.dtype] = torch.float32

    @abstractmethod
    def score_at(self, features: Tensor, embeddings: Tensor, at: Tensor) -> Tensor:
        """Familiarity of each row to the entity at the place ``at`` of ``embeddings``."""

    @abstractmethod
    def score_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """Familiarity of every row to every entity, as a matrix of rows × entities."""


class PairHead(Head):
    """A head that is a function of one row's features and one entity's embedding."""

    @abstractmethod
    def forward(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """Familiarity of each row to the entity beside it."""

    def score_at(self, features: Tensor, embeddings: Tensor, at: Tensor) -> Tensor:
        """Familiarity of each row to the entity at the place ``at`` of ``embeddings``."""
        scores: Tensor = self(features, embeddings[at])
        return scores


class Known(NamedTuple):
    """What is known of entities before more of their rows come.

    Args:
        embeddings: Embedding of each.
        counts: Number of rows that each was learnt from.
    """

    embeddings: Tensor
    counts: Tensor

    @classmethod
    def at(cls, table: EntityTable, places: Tensor) -> "Known":
        """What a table knows of the entities at ``places``."""
        return cls(table.column("embedding")[places], table.counts[places])


class Solver(nn.Module, ABC):
    """Finds the embedding of new entities from their rows."""

    # Columns of the table of entities that the solver needs, beside those that every detector has.
    extra_columns: Mapping[str, int] = {}
    # Whether finding an embedding takes random draws.
    draws: ClassVar[bool] = True

    @abstractmethod
    def embed(self, head: Head, features: Tensor, observed: Observations, table: EntityTable) -> Columns:
        """The "embedding" of each entity of ``observed``, and what its extra columns hold.

        Args:
            head: What the embeddings are for.
            features: Features of the rows of ``observed``.
            observed: Rows of the new entities.
            table: The entities known so far.
        """


class StreamSolver(Solver):
    """A solver that can also take in more rows of an entity without seeing the old ones again."""

    @abstractmethod
    def update(
        self, head: Head, features: Tensor, observed: Observations, table: EntityTable, places: Tensor
    ) -> Columns:
        """As ``embed``, for entities that the table knows at ``places`` already."""


class Learned(NamedTuple):
    """What a fit found for each entity.

    Args:
        columns: The "embedding" of each entity, and its extra columns.
        features: Features of the training rows, if the fit has computed them.
    """

    columns: Columns
    features: Tensor | None = None
