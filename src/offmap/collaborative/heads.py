"""Heads of density ratios: a perceptron of row and embedding, or an inner product of the two."""

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from offmap.collaborative.networks import perceptron
from offmap.collaborative.parts import PairHead
from offmap.nets.pairs import off_diagonal
from offmap.nets.steady import Linear


class RatioHead(PairHead):
    r"""Estimates the log ratio $\log q_t(x) / p(x)$ of an entity's rows to those of all entities."""

    @abstractmethod
    def contrast(self, features: Tensor, embeddings: Tensor) -> tuple[Tensor, Tensor]:
        """Log ratios of the rows of a batch for their own entities, and of a sample of all rows for the same."""


class ConcatHead(RatioHead):
    r"""A perceptron of row and embedding together, $f(x, e) = \mathrm{MLP}([x, e])$.

    Its first layer is the sum of a layer of the row and one of the embedding. The former belongs to the features, so
    that only the layers above are computed once per pair.

    Args:
        size: Width of an embedding.
        hidden: Widths of the hidden layers; the features have the width of the first.
        dropout: Dropout after each hidden layer.
    """

    def __init__(self, size: int, hidden: Sequence[int], dropout: float | Sequence[float]) -> None:
        super().__init__()
        self.of_entity = Linear(size, hidden[0], bias=False)
        # The first linear layer of the perceptron is that of the features plus the one above.
        self.above = nn.Sequential(*list(perceptron([1, *hidden], dropout))[1:], Linear(hidden[-1], 1))

    def forward(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """The log ratio of each row for the entity beside it."""
        return self.above(features + self.of_entity(embeddings)).squeeze(-1)

    def score_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """The log ratio of every row for every entity, as a matrix."""
        pieces = self.of_entity(embeddings).split(max(1, _PAIRS // len(features)))
        return torch.cat([self.above(features.unsqueeze(1) + piece).squeeze(-1) for piece in pieces], dim=1)

    def contrast(self, features: Tensor, embeddings: Tensor) -> tuple[Tensor, Tensor]:
        """Log ratios of own rows, and of as many others: each entity with the row of the next."""
        return self(features, embeddings), self(features.roll(1, dims=0), embeddings)


class InnerProductHead(RatioHead):
    r"""The inner product $f(x, e) = \langle \varphi(x), e \rangle$."""

    def forward(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """The log ratio of each row for the entity beside it."""
        return (features * embeddings).sum(dim=-1)

    def score_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """The log ratio of every row for every entity, as a matrix."""
        return features @ embeddings.T

    def contrast(self, features: Tensor, embeddings: Tensor) -> tuple[Tensor, Tensor]:
        """Log ratios of own rows, and of all others: every row of the batch for the entity of every other."""
        scores = features @ embeddings.T
        # A batch of one row has no other: the row itself stands for all.
        return scores.diagonal(), off_diagonal(scores) if len(scores) > 1 else scores


class AppendOne(nn.Module):
    """Adds a constant feature 1, whose weight in an embedding is the level of the entity."""

    def forward(self, features: Tensor) -> Tensor:
        """The features, one more than before."""
        return torch.cat([features, torch.ones_like(features[:, :1])], dim=1)


def concat_features(body: nn.Module, inputs: int, hidden: Sequence[int]) -> nn.Sequential:
    """Features for a ``ConcatHead``: the part of its first layer that needs no entity."""
    if len(hidden) == 0:
        raise ValueError("hidden must hold at least one layer for head='concat'")
    return nn.Sequential(body, Linear(inputs, hidden[0]))


def tower_features(
    body: nn.Module, inputs: int, size: int, hidden: Sequence[int], dropout: float | Sequence[float]
) -> nn.Sequential:
    """Features for an ``InnerProductHead``: ``size`` of them, of which the last is the constant 1."""
    tower = nn.Sequential(perceptron([inputs, *hidden], dropout), Linear((inputs, *hidden)[-1], size - 1))
    return nn.Sequential(body, tower, AppendOne())


# Pairs whose layers are held at once: few enough to stay in the cache.
_PAIRS = 16384
