"""How a row and the embedding of a task meet: in a perceptron, or in an inner product.

Both split the work in two: ``rows`` is done once a row, ``forward`` once a pair.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from offmap.collaborative.networks import RowNetwork, perceptron


class ConcatHead(nn.Module):
    r"""A perceptron of row and embedding together, $f(x, e) = \mathrm{MLP}([x, e])$.

    Its first layer is a sum of one of the row and one of the embedding, so that only the layers above are computed for
    each pair.
    """

    def __init__(self, inputs: int, size: int, hidden: Sequence[int], dropout: float | Sequence[float]) -> None:
        super().__init__()
        if len(hidden) == 0:
            raise ValueError("hidden must hold at least one layer for head='concat'")
        self.outputs = hidden[0]
        self.of_row = nn.Linear(inputs, hidden[0])
        self.of_task = nn.Linear(size, hidden[0], bias=False)
        # The first linear layer of the perceptron is the sum of the two above.
        self.above = nn.Sequential(*list(perceptron([1, *hidden], dropout))[1:], nn.Linear(hidden[-1], 1))

    def rows(self, features: Tensor) -> Tensor:
        """The part of the first layer that needs no task."""
        return self.of_row(features)

    def forward(self, rows: Tensor, embeddings: Tensor) -> Tensor:
        """The log ratio of each row for the task beside it."""
        return self.above(rows + self.of_task(embeddings)).squeeze(-1)

    def of_all(self, rows: Tensor, embeddings: Tensor) -> Tensor:
        """The log ratio of every row for every task, as a matrix."""
        pieces = self.of_task(embeddings).split(max(1, _PAIRS // len(rows)))
        return torch.cat([self.above(rows.unsqueeze(1) + piece).squeeze(-1) for piece in pieces], dim=1)

    def contrast(self, rows: Tensor, embeddings: Tensor) -> tuple[Tensor, Tensor]:
        """Log ratios of own exposures, and of as many of the population: each task with the row of the next."""
        return self(rows, embeddings), self(rows.roll(1, dims=0), embeddings)


class TwoTowerHead(nn.Module):
    r"""An inner product, $f(x, e) = \langle \varphi(x), e \rangle$; the last feature is a constant 1."""

    def __init__(self, inputs: int, size: int, hidden: Sequence[int], dropout: float | Sequence[float]) -> None:
        super().__init__()
        self.outputs = size
        self.tower = nn.Sequential(perceptron([inputs, *hidden], dropout), nn.Linear((inputs, *hidden)[-1], size - 1))

    def rows(self, features: Tensor) -> Tensor:
        """The features φ(x)."""
        found = self.tower(features)
        return torch.cat([found, torch.ones_like(found[:, :1])], dim=1)

    def forward(self, rows: Tensor, embeddings: Tensor) -> Tensor:
        """The log ratio of each row for the task beside it."""
        return (rows * embeddings).sum(dim=-1)

    def of_all(self, rows: Tensor, embeddings: Tensor) -> Tensor:
        """The log ratio of every row for every task, as a matrix."""
        return rows @ embeddings.T

    def contrast(self, rows: Tensor, embeddings: Tensor) -> tuple[Tensor, Tensor]:
        """Log ratios of own exposures, and of the population: every row of the batch for the task of every other."""
        scores = rows @ embeddings.T
        return scores.diagonal(), _off_diagonal(scores)


class RatioNetwork(nn.Module):
    """A network of rows under a head that compares with tasks."""

    def __init__(self, body: RowNetwork, head: ConcatHead | TwoTowerHead) -> None:
        super().__init__()
        self.body, self.head = body, head

    def rows(self, X: Tensor) -> Tensor:
        """All that can be computed of a row without a task."""
        return self.head.rows(self.body(X))


def _off_diagonal(square: Tensor) -> Tensor:
    """What is not on the diagonal of a square matrix; all of it if it has one row."""
    size = len(square)
    return square.flatten()[1:].view(size - 1, size + 1)[:, :-1].flatten() if size > 1 else square.flatten()


# Pairs whose layers are held at once: few enough to stay in the cache.
_PAIRS = 16384
