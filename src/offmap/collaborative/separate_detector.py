"""Detectors that train a network per entity: its weights take the place of an embedding."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from offmap.collaborative.base import EntityDetector
from offmap.collaborative.entities import Columns, EntityTable
from offmap.collaborative.networks import RowNetwork
from offmap.collaborative.observations import Observations
from offmap.collaborative.parts import Head, Learned, Solver
from offmap.collaborative.scoring import all_features
from offmap.collaborative.separate import NetworkStack, fit_separately, flat_weights
from offmap.parameters import Count, NonNegative, Positive

# Rows of all entities that networks are trained against, and own rows of each entity per step.
_SAMPLE, _ROWS = 4096, 32


class Recipe(ABC):
    """What the network of one entity is, and how it is trained."""

    @abstractmethod
    def network(self) -> nn.Module:
        """A new network; it maps features of rows to one familiarity each."""

    @abstractmethod
    def loss(self, networks: Callable[[Tensor], Tensor], own: Tensor, population: Tensor) -> Tensor:
        """The sum of the losses of some entities, given own rows and rows of all entities (entity, row, …)."""

    def first(self, template: nn.Module, own: Tensor) -> nn.Module:
        """The network that an entity with the rows ``own`` starts from."""
        return self.network()


class SeparateHead(Head):
    """Scores rows by the network of their entity.

    Args:
        template: A network of the right architecture, with the buffers that all entities share.
    """

    comparable = False

    def __init__(self, template: nn.Module) -> None:
        super().__init__()
        self.template = template

    def score_at(self, features: Tensor, embeddings: Tensor, at: Tensor) -> Tensor:
        """Familiarity of each row to the entity at the place ``at`` of ``embeddings``."""
        return NetworkStack(self.template).of_pairs(embeddings, features, at)

    def score_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """Familiarity of every row to every entity, as a matrix."""
        return NetworkStack(self.template).of_all(embeddings, features)


class SeparateSolver(Solver):
    """Trains a network for each new entity, all of them at the same time.

    Args:
        recipe: What the networks are.
        shape: Shape of the features of a row.
        epochs: Passes over the rows of an entity.
        batch_size: Rows per step and entity, at most 32 of which are used.
        lr: Step size.
        weight_decay: Weight decay.
    """

    population: Tensor

    def __init__(
        self, recipe: Recipe, shape: tuple[int, ...], *, epochs: int, batch_size: int, lr: float, weight_decay: float
    ) -> None:
        super().__init__()
        self.recipe, self.epochs, self.size = recipe, epochs, max(2, min(batch_size, _ROWS))
        self.lr, self.weight_decay = lr, weight_decay
        self.register_buffer("population", torch.zeros(_SAMPLE, *shape))

    def embed(self, head: Head, features: Tensor, observed: Observations, table: EntityTable) -> Columns:
        """The weights of the networks of new entities."""
        return {"embedding": self(head, features, observed)}

    def forward(self, head: Head, features: Tensor, observed: Observations) -> Tensor:
        """Trains a network for each entity of ``observed`` against a sample of all rows; returns their weights."""
        template = head.get_submodule("template")
        together = Observations(torch.cat([features, self.population]), observed.index, observed.entities)
        first = flat_weights([self.recipe.first(template, features[rows]) for rows in observed.rows_by_entity()])
        with torch.enable_grad():
            return fit_separately(
                NetworkStack(template),
                first.to(features.device),
                together,
                self.recipe.loss,
                population=torch.arange(len(features), len(together.X), device=features.device),
                epochs=self.epochs,
                size=self.size,
                lr=self.lr,
                weight_decay=self.weight_decay,
            )


@dataclass(kw_only=True, eq=False, repr=False)
class SeparateDetector(EntityDetector):
    """Trains a network per entity on its own rows; nothing is shared but a sample of all rows.

    The networks of all entities have one architecture and are trained at the same time. ``partial_fit`` takes in new
    entities only, and there are no embeddings that ``similar_entities`` could compare.

    Args:
        epochs: Passes over the rows of an entity.
        batch_size: Rows per step and entity, at most 32 of which are used.
        lr: Step size.
        weight_decay: Weight decay.
    """

    epochs: Count = 50
    batch_size: Count = 256
    lr: Positive = 1e-3
    weight_decay: NonNegative = 1e-4

    @abstractmethod
    def _recipe(self) -> Recipe:
        """What the network of one entity is, and how it is trained."""

    @abstractmethod
    def _shared_features(self) -> nn.Module:
        """What all entities share: a map of rows to the features that the networks take."""

    @abstractmethod
    def _feature_shape(self) -> tuple[int, ...]:
        """Shape of the features of a row."""

    def _build_parts(self) -> None:
        self._use_parts(self._shared_features(), SeparateHead(self._recipe().network()), self._new_solver())

    def _new_solver(self) -> SeparateSolver:
        return SeparateSolver(
            self._recipe(),
            self._feature_shape(),
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.lr,
            weight_decay=self.weight_decay,
        )

    def _fit(self, observed: Observations, given: Tensor | None) -> Learned:
        self._build_parts()
        for part in (*self.features_.modules(), *self.head_.modules()):
            if isinstance(part, RowNetwork):
                part.fit(observed.X)
        solver = self.solver_
        assert isinstance(solver, SeparateSolver)
        features = all_features(self.features_, observed.X)
        solver.population.copy_(features[observed.sample(_SAMPLE)])
        return Learned({"embedding": solver(self.head_, features, observed)}, features)
