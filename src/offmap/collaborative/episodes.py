"""Trains the components of a mixture: some rows of an entity say what it is like, others are to be recognised."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from offmap.collaborative.mixture import MixtureHead, feature_sums
from offmap.collaborative.observations import Observations
from offmap.collaborative.scoring import all_features
from offmap.collaborative.training import Schedule, optimizer_of
from offmap.ratio import loss_on_p, loss_on_q
from offmap.train import Batch, History, descend, train

# Rows of an entity that make an episode, and validation rows that are compared with one another.
_ROWS, _COMPARED = 32, 512
# Steps per epoch, at least: few rows make few batches, and 50 epochs of one batch each would teach next to nothing.
_STEPS = 4


@dataclass(frozen=True)
class Episodes:
    """Batches of episodes: rows of one entity each, at most 32, in new groups for each epoch.

    A batch holds the row of ``X``, the entity and the episode of each of its observations.

    Args:
        observed: The observations.
        size: Observations per batch, about.
    """

    observed: Observations
    size: int

    def __len__(self) -> int:
        episodes = int(self._episodes_of(self.observed.counts).sum())
        each = max(2, round(self.size * episodes / len(self.observed)))
        return max(1, round(episodes / each))

    def __iter__(self) -> Iterator[Batch]:
        entities, counts = self.observed.entities, self.observed.counts
        mixed = torch.randperm(len(entities), device=entities.device)
        order = mixed[torch.argsort(entities[mixed], stable=True)]
        place = torch.arange(len(order), device=order.device) - (counts.cumsum(0) - counts)[entities[order]]
        episodes = self._episodes_of(counts)
        of_entity = place * episodes[entities[order]] // counts[entities[order]]
        episode = (episodes.cumsum(0) - episodes)[entities[order]] + of_entity
        batch_of = torch.randperm(int(episodes.sum()), device=order.device) % len(self)
        for batch in range(len(self)):
            chosen = (batch_of[episode] == batch).nonzero().squeeze(1)
            at = order[chosen]
            yield self.observed.index[at], entities[at], episode[chosen].unique(return_inverse=True)[1]

    @staticmethod
    def _episodes_of(counts: Tensor) -> Tensor:
        return (counts + _ROWS - 1) // _ROWS


@dataclass(frozen=True)
class Repeated:
    """Batches of as many passes over the rows as it takes to have ``least`` batches.

    Args:
        once: The batches of one pass.
        least: Batches per epoch.
    """

    once: Episodes
    least: int

    def __len__(self) -> int:
        return self._passes() * len(self.once)

    def __iter__(self) -> Iterator[Batch]:
        for _ in range(self._passes()):
            yield from self.once

    def _passes(self) -> int:
        return -(-self.least // len(self.once))


def episode_loss(head: MixtureHead, features: Tensor, entities: Tensor, episodes: Tensor, shares: Tensor) -> Tensor:
    """The logistic loss of a batch of episodes: every row is told from those of all by the other rows of its own.

    The rows of all entities are those of others and, by its share, the entity's own.

    Args:
        head: What scores features.
        features: Features of the rows.
        entities: Entity of each row.
        episodes: Episode of each row: 0, 1, ….
        shares: Share of each entity among all observations.
    """
    counts = torch.bincount(episodes)
    sums = features.new_zeros(len(counts), features.shape[1]).index_add_(0, episodes, features)
    own = head(features, head.embeddings(sums[episodes] - features, counts[episodes] - 1))
    owner = torch.zeros_like(counts).index_copy_(0, episodes, entities)
    others = head.score_all(features, head.embeddings(sums, counts))[entities.unsqueeze(1) != owner]
    return _loss(own, others, shares[entities])


def _loss(own: Tensor, others: Tensor, share: Tensor) -> Tensor:
    """The loss of own rows against others' and, by the share of each, against own ones again."""
    against = (share * loss_on_q(own)).mean()
    if len(others):
        against = against + (1 - share.mean()) * loss_on_q(others).mean()
    return loss_on_p(own).mean() + against


def fit_components(
    features: nn.Module, head: MixtureHead, observed: Observations, validation: Observations, schedule: Schedule
) -> History:
    """Trains the features and the prior of a mixture.

    Args:
        features: Maps rows to the probabilities of components.
        head: Holds the prior.
        observed: Observations to train on.
        validation: Observations for the validation loss; none for a fixed number of epochs.
        schedule: How long and how fast.
    """

    shares = observed.counts / len(observed)

    def terms(batch: Batch) -> dict[str, Tensor]:
        index, entities, episodes = batch
        return {"loss": episode_loss(head, features(observed.X[index]), entities, episodes, shares)}

    network = nn.ModuleList([features, head])
    optimizer = optimizer_of(network, None, schedule)
    return train(
        descend(optimizer, terms),
        Repeated(Episodes(observed, schedule.batch_size), _STEPS),
        epochs=schedule.epochs,
        state={"network": network, "optimizer": optimizer},
        validate=(lambda: _validation_loss(features, head, observed, validation)) if len(validation) else None,
        patience=schedule.patience,
        label="all entities",
    )


def _validation_loss(features: nn.Module, head: MixtureHead, observed: Observations, validation: Observations) -> float:
    """The loss of validation rows under the embeddings that the training rows give their entities."""
    known = all_features(features, observed.X)
    embeddings = head.embeddings(*feature_sums(known, observed))
    total, shares = 0.0, observed.counts / len(observed)
    for index, entities in zip(validation.index.split(_COMPARED), validation.entities.split(_COMPARED), strict=True):
        scores = head.score_all(known[index], embeddings[entities])
        others = scores[entities.unsqueeze(1) != entities]
        total += len(index) * float(_loss(scores.diagonal(), others, shares[entities]))
    return total / len(validation)
