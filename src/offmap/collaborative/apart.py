"""Detectors that learn every task alone: its own network's weights take the place of an embedding."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from offmap.collaborative.base import Similar
from offmap.collaborative.embedded import EmbeddedDetector
from offmap.collaborative.exposures import Exposures
from offmap.collaborative.ids import Id
from offmap.collaborative.networked import NetworkDetector
from offmap.collaborative.networks import RowNetwork
from offmap.collaborative.separate import Stack, fit_apart, flat_weights


@dataclass(kw_only=True, eq=False, repr=False)
class ApartDetector(NetworkDetector):
    """What the methods share that can give each task a network of its own."""

    @abstractmethod
    def _alone(self) -> nn.Module:
        """The network of one task; maps features of rows to a familiarity each."""

    @abstractmethod
    def _loss_alone(self, networks: Callable[[Tensor], Tensor], own: Tensor, population: Tensor) -> Tensor:
        """The summed loss of the networks of some tasks, given own rows and rows of the population (task, row, …)."""

    def _build_alone(self) -> None:
        self.template_ = self._alone().to(self.device)

    def _fit_alone(self, shown: Exposures) -> Tensor:
        """Trains a network for each task; returns the weights of each."""
        self._build_alone()
        for part in self.template_.modules():
            if isinstance(part, RowNetwork):
                part.measure(shown.X)
        features = self._all_features(shown.X)
        drawn = shown.index[torch.randint(len(shown), (_SAMPLE,), device=shown.index.device)]
        self.population_ = features[drawn]
        return self._embed_alone(features, shown)

    def _embed_alone(self, features: Tensor, shown: Exposures) -> Tensor:
        """The weights of networks for the tasks of ``shown``, against a sample of the population."""
        together = Exposures(torch.cat([features, self.population_]), shown.index, shown.tasks)
        with torch.enable_grad():
            return fit_apart(
                Stack(self.template_),
                self._first_weights(features, shown).to(self.device),
                together,
                self._loss_alone,
                population=torch.arange(len(features), len(together.X), device=shown.index.device),
                epochs=self.epochs,
                size=max(2, min(self.batch_size, _ROWS)),
                lr=self.lr,
                weight_decay=self.weight_decay,
            )

    def _first_weights(self, features: Tensor, shown: Exposures) -> Tensor:
        """Weights that the networks of new tasks start from."""
        return flat_weights([self._alone() for _ in range(len(shown.counts))])

    def similar_tasks(self, task: Id, k: int = 10) -> Similar:
        """As of other detectors; a ``ValueError`` where tasks have networks of their own, which no angle compares."""
        if hasattr(self, "template_"):
            raise ValueError("similar_tasks needs embeddings; here every task has a network of its own")
        return super().similar_tasks(task, k)

    def _refuse_stream(self) -> None:
        raise ValueError(
            "partial_fit cannot add to a task with a network of its own, which has to see all exposures again; "
            "add_task makes new tasks known"
        )


@dataclass(kw_only=True, eq=False, repr=False)
class SeparableDetector(ApartDetector, EmbeddedDetector):
    """What the methods share that come in two kinds: ``joint``, and with a network for each task."""

    def _familiarity_at(self, features: Tensor, vectors: Tensor, at: Tensor) -> Tensor:
        if self.joint:
            return super()._familiarity_at(features, vectors, at)
        return Stack(self.template_).of_pairs(vectors, features, at)

    def _familiarity_to_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        if self.joint:
            return self._joint_to_all(features, embeddings)
        return Stack(self.template_).of_all(embeddings, features)

    def _joint_to_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        return super()._familiarity_to_all(features, embeddings)

    def _learn_on(self, places: Tensor, features: Tensor, shown: Exposures) -> Tensor:
        if not self.joint:
            self._refuse_stream()
        return super()._learn_on(places, features, shown)


# Rows of the population that networks of single tasks are trained against, and own rows of each task a step.
_SAMPLE, _ROWS = 4096, 32
