"""Detectors that condition one model on the embedding of an entity: the parameters that they share."""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import torch
from torch import Tensor, nn

from offmap.collaborative.augmentation import Augment
from offmap.collaborative.base import EntityDetector
from offmap.collaborative.embeddings import Embedding, EntityMeans, OccurringLabels
from offmap.collaborative.networks import Network, RowNetwork, row_network
from offmap.collaborative.observations import Observations
from offmap.collaborative.row_values import Clusters, Labels, SeedRatios
from offmap.collaborative.seeds import Choice, choose_seeds
from offmap.collaborative.training import Schedule
from offmap.nets import Standardise
from offmap.parameters import Count, NonNegative, Positive, Share

# Rows that clusters are found from, at most.
_CLUSTERED = 20000


@dataclass(kw_only=True, eq=False, repr=False)
class EmbeddingDetector(EntityDetector):
    """Learns one model of rows for all entities, and an embedding of each entity that the model is conditioned on.

    Args:
        embedding: Where embeddings start. "random": normal numbers. "learned": mean log ratios of seed entities, from a
            model of these alone. "pseudo": shares of clusters. "label" and "histogram": the labels that occur, and
            their shares; both need ``labels`` in ``fit``. "given": the vectors passed to ``fit`` as ``embeddings``.
            Means and shares are standardised over the entities; those of a new entity with few rows are drawn to the
            mean of all.
        embedding_size: Width of random embeddings; number of clusters of "pseudo".
        seed_entities: Number of seed entities of "learned".
        seed_choice: How seed entities are chosen: "random", "k_centre" (spread out) or "leverage".
        tune_embeddings: Whether training moves the embeddings. Turn it off to keep what labels or given vectors say.
        network: "conv" for images, "mlp" for any rows; "auto" takes convolutions for images of 16 pixels and more. A
            density uses it only to learn embeddings.
        hidden: Widths of the hidden layers.
        conv_channels: Channels of the first of four convolutions; the next have 2, 4 and 8 times as many.
        dropout: Share of the units dropped in training: one number, or one for each hidden layer. A density uses it
            only to learn embeddings.
        augment: How training images are changed at random each time they are seen. "crop": padded with zeros by an
            eighth of each side, then cut to the old size. "crop_flip": half of them are also mirrored left to right, as
            in the paper; for images that may be mirrored.
        epochs: Passes over the rows of all entities, at most.
        batch_size: Rows per step.
        lr: Step size.
        weight_decay: Weight decay of the networks.
        patience: Epochs without a lower validation loss after which training stops; None for all epochs.
        validation: Share of the rows that the validation loss is computed on.
    """

    spatial: ClassVar[bool] = True

    embedding: Embedding = "random"
    embedding_size: Count = 16
    seed_entities: Count = 64
    seed_choice: Choice = "random"
    tune_embeddings: bool = True
    network: Network = "auto"
    hidden: tuple[Count, ...] = (128, 64)
    conv_channels: Count = 16
    dropout: Share | tuple[Share, ...] = 0.0
    augment: Augment = "none"
    epochs: Count = 50
    batch_size: Count = 256
    lr: Positive = 1e-3
    weight_decay: NonNegative = 1e-4
    patience: Count | None = 10
    validation: Share = 0.1

    def _row_width(self) -> int:
        return 64 * self.conv_channels

    def _body(self) -> RowNetwork:
        return row_network(self.input_shape_, self.network, self.conv_channels, augment=self.augment)

    def _means_of_rows(self, seeds: int) -> EntityMeans | OccurringLabels | None:
        """What makes embeddings of an entity's rows; None for random and given ones."""
        if self.embedding == "learned":
            return EntityMeans(SeedRatios(self._body(), tuple(self.hidden), self.dropout, seeds)).to(self.device)
        if self.embedding == "pseudo":
            return EntityMeans(Clusters(prod(self.input_shape_), self.embedding_size)).to(self.device)
        if self.embedding == "histogram":
            return EntityMeans(Labels(len(self.labels_))).to(self.device)
        return OccurringLabels(len(self.labels_)).to(self.device) if self.embedding == "label" else None

    def _first_embeddings(
        self, observed: Observations, given: Tensor | None
    ) -> tuple[Tensor, EntityMeans | OccurringLabels | None]:
        """The embedding that each entity starts from, and what made it of the entity's rows."""
        if (self.embedding == "given") != (given is not None):
            raise ValueError('embeddings must be given to fit with embedding="given", and only then')
        if given is not None:
            return given, None
        means = self._means_of_rows(min(self.seed_entities, len(observed.counts)))
        if means is None:
            return torch.randn(len(observed.counts), self.embedding_size, device=self.device), None
        if isinstance(means, EntityMeans):
            self._fit_values(means.values, observed)
            means.fit(observed)
        with torch.no_grad():
            return means(observed), means

    def _fit_values(self, values: nn.Module, observed: Observations) -> None:
        """Learns what embeddings are means of, where that has to be learnt."""
        if isinstance(values, SeedRatios):
            count = min(self.seed_entities, len(observed.counts))
            values.fit(observed, choose_seeds(_centres(observed), count, self.seed_choice), Schedule.of(self))
        elif isinstance(values, Clusters):
            values.fit(observed.X[observed.index[torch.randperm(len(observed))[:_CLUSTERED]]])


def _centres(observed: Observations) -> Tensor:
    """The mean of each entity's rows; features are standardised, pixels are not."""
    centres = observed.entity_means(observed.X.flatten(1))
    return Standardise(centres.shape[1]).to(centres.device).fit(centres)(centres) if observed.X.ndim == 2 else centres
