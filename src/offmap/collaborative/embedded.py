"""Detectors whose tasks start from an embedding: the parameters they share, and how the first embeddings are made."""

from abc import abstractmethod
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn

from offmap.collaborative.embeddings import Clusters, Embedding, Labels, LabelsThatOccur, SeedRatios, TaskMeans
from offmap.collaborative.exposures import Exposures
from offmap.collaborative.joint import Schedule
from offmap.collaborative.networked import NetworkDetector
from offmap.collaborative.seeds import Choice, choose_seeds
from offmap.collaborative.solve import Known
from offmap.nets import Standardise
from offmap.parameters import Count, Share


@dataclass(kw_only=True, eq=False, repr=False)
class EmbeddedDetector(NetworkDetector):
    """What the methods share that condition one model on the embedding of a task.

    Args:
        embedding: Where embeddings start. "random": normal numbers. "learned": mean log ratios of seed tasks, from a
            model of these alone. "pseudo": shares of clusters. "label" and "histogram": the labels that occur, and
            their shares; both need ``labels`` in ``fit``. "given": the vectors passed to ``fit`` as ``embeddings``.
            Means and shares are standardised over the tasks; those of a new task of few exposures lean to their mean.
        embedding_size: Width of random embeddings; number of clusters of "pseudo".
        seed_tasks: Number of seed tasks of "learned".
        seed_choice: How they are chosen: "random", "k_centre" (spread out) or "leverage".
        tune_embeddings: Whether training moves the embeddings.
        joint: Whether one model serves all tasks; otherwise each task has networks of its own, and no embedding.
        patience: Epochs without a lower loss on validation exposures after which training stops; None for all epochs.
        validation: Share of the exposures that ``patience`` looks at.
    """

    embedding: Embedding = "random"
    embedding_size: Count = 16
    seed_tasks: Count = 64
    seed_choice: Choice = "random"
    tune_embeddings: bool = True
    joint: bool = True
    patience: Count | None = 10
    validation: Share = 0.1

    def _build_embedder(self) -> None:
        """Makes what turns exposures into first embeddings; embeddings that are random or given need nothing."""
        embedder: TaskMeans | LabelsThatOccur
        if self.embedding == "learned":
            embedder = TaskMeans(SeedRatios(self._body(), tuple(self.hidden), self.dropout, self.seed_count_))
        elif self.embedding == "pseudo":
            embedder = TaskMeans(Clusters(prod(self.input_shape_), self.embedding_size))
        elif self.embedding == "histogram":
            embedder = TaskMeans(Labels(len(self.labels_)))
        elif self.embedding == "label":
            embedder = LabelsThatOccur(len(self.labels_))
        else:
            return
        self.embedder_ = embedder.to(self.device)

    def _learn_on(self, places: Tensor, features: Tensor, shown: Exposures) -> Tensor:
        known = Known(self.tasks_.column("embedding")[places], self.tasks_.column("count")[places, 0])
        if not self._made_of_exposures():
            return self._found(features, shown, known)
        return self.embedder_.update(known, shown)

    def _embed(self, features: Tensor, shown: Exposures) -> Tensor:
        if not self.joint:
            return self._embed_alone(features, shown)
        if not self._made_of_exposures():
            return self._found(features, shown, None)
        count = len(shown.counts)
        nothing = Known(features.new_zeros(count, self.embedding_size_), features.new_zeros(count))
        return self.embedder_.update(nothing, shown)

    @abstractmethod
    def _embed_alone(self, features: Tensor, shown: Exposures) -> Tensor:
        """What describes new tasks that learn alone."""

    def _made_of_exposures(self) -> bool:
        """Whether the embedding of a new task is made as the first ones were."""
        return hasattr(self, "embedder_")

    @abstractmethod
    def _found(self, features: Tensor, shown: Exposures, known: Known | None) -> Tensor:
        """The embeddings under which exposures are most likely, given what is known of their tasks."""

    def _first_embeddings(self, shown: Exposures, given: Tensor | None) -> Tensor:
        """The embedding that each task starts from."""
        self.seed_count_ = min(self.seed_tasks, len(shown.counts))
        if (self.embedding == "given") != (given is not None):
            raise ValueError('embeddings must be given to fit with embedding="given", and only then')
        if given is not None:
            return given
        self._build_embedder()
        if self.embedding == "random":
            return torch.randn(len(shown.counts), self.embedding_size, device=self.device)
        if isinstance(self.embedder_, TaskMeans):
            self._fit_values(self.embedder_.values, shown)
            self.embedder_.measure(shown)
        with torch.no_grad():
            return self.embedder_(shown)

    def _fit_values(self, values: nn.Module, shown: Exposures) -> None:
        """Learns what embeddings are means of, where that has to be learnt."""
        if isinstance(values, SeedRatios):
            seeds = choose_seeds(_centres(shown), self.seed_count_, self.seed_choice)
            values.fit(shown, seeds, Schedule.of(self))
        elif isinstance(values, Clusters):
            values.fit(shown.X[shown.index[torch.randperm(len(shown))[:20000]]])


def _centres(shown: Exposures) -> Tensor:
    """Where the exposures of each task lie; columns count alike whatever their unit, pixels as they are."""
    centres = shown.task_means(shown.X.flatten(1))
    return Standardise(centres.shape[1]).to(centres.device).fit(centres)(centres) if shown.X.ndim == 2 else centres
