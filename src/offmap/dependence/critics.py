"""Critics: networks that score how much a pair of rows looks as if it was drawn together."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from offmap.nets.stacked import StackedLinear, stacked_mlp


class Critic(nn.Module, ABC):
    """Scores pairs in two steps: each row is embedded once, then any pairs of embedded rows are scored.

    Rows are ``(terms, n, width)``: a critic is a stack with one network per term, run in one computation.
    """

    @abstractmethod
    def embed(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Embeds each row of ``x`` and of ``y``, ``(terms, n, features)`` each."""

    @abstractmethod
    def score(self, a: Tensor, b: Tensor) -> Tensor:
        """Scores pairs of embedded rows ``(terms, …, features)``, whose shapes broadcast."""

    @abstractmethod
    def cross(self, a: Tensor, b: Tensor) -> Tensor:
        """Scores every embedded row of ``a`` with every one of ``b``: ``(terms, n, m)``."""


def cross_by_broadcasting(critic: Critic, a: Tensor, b: Tensor) -> Tensor:
    """Scores all pairs with the critic's own ``score``, for critics that have no faster way."""
    return critic.score(a.unsqueeze(-2), b.unsqueeze(-3))


class JointCritic(Critic):
    r"""A perceptron on the concatenated pair, $f(x, y) = \mathrm{mlp}([x, y])$.

    Its first layer is applied to each row once, not to each pair.

    Args:
        x_widths: Width of ``x`` in each term.
        y_widths: Width of ``y`` in each term.
        hidden: Widths of the hidden layers.

    Example:
        >>> critic = JointCritic([3], [2], hidden=(16,))
        >>> critic.cross(*critic.embed(torch.zeros(1, 5, 3), torch.zeros(1, 5, 2))).shape
        torch.Size([1, 5, 5])
    """

    def __init__(self, x_widths: Sequence[int], y_widths: Sequence[int], hidden: Sequence[int]) -> None:
        super().__init__()
        if not hidden:
            raise ValueError("hidden must have at least one width for critic 'joint'; got none")
        both = [before + after for before, after in zip(x_widths, y_widths, strict=True)]
        self.left = StackedLinear(x_widths, hidden[0], fan_in=both)
        # The two halves are one layer, which has one bias.
        self.right = StackedLinear(y_widths, hidden[0], fan_in=both, bias=False)
        self.rest = stacked_mlp([hidden[0]] * len(both), [*hidden[1:], 1])

    def embed(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Applies the two halves of the first layer."""
        return self.left(x), self.right(y)

    def score(self, a: Tensor, b: Tensor) -> Tensor:
        """Applies the remaining layers to the sum of the halves."""
        return self.rest((a + b).relu()).squeeze(-1)

    def cross(self, a: Tensor, b: Tensor) -> Tensor:
        """Scores all pairs."""
        return cross_by_broadcasting(self, a, b)


class SeparableCritic(Critic):
    r"""The inner product of two embeddings, $f(x, y) = g(x) \cdot h(y)$; all pairs cost one matrix product.

    Args:
        x_widths: Width of ``x`` in each term.
        y_widths: Width of ``y`` in each term.
        hidden: Widths of the hidden layers of both embeddings.
        embedding_width: Width of the embeddings.

    Example:
        >>> critic = SeparableCritic([3], [2], hidden=(16,))
        >>> critic.cross(*critic.embed(torch.zeros(1, 5, 3), torch.zeros(1, 5, 2))).shape
        torch.Size([1, 5, 5])
    """

    def __init__(
        self, x_widths: Sequence[int], y_widths: Sequence[int], hidden: Sequence[int], embedding_width: int = 32
    ) -> None:
        super().__init__()
        self.g = stacked_mlp(x_widths, [*hidden, embedding_width])
        self.h = stacked_mlp(y_widths, [*hidden, embedding_width])

    def embed(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Applies the two embeddings."""
        return self.g(x), self.h(y)

    def score(self, a: Tensor, b: Tensor) -> Tensor:
        """Inner product of each pair."""
        return (a * b).sum(-1)

    def cross(self, a: Tensor, b: Tensor) -> Tensor:
        """Inner products of all pairs."""
        return a @ b.mT


class CosineCritic(Critic):
    r"""The cosine similarity of the two rows divided by a temperature, as in contrastive learning; nothing is learnt.

    Args:
        x_widths: Width of ``x`` in each term.
        y_widths: Width of ``y`` in each term: the same.
        hidden: Ignored; accepted so that all critics are made alike.
        temperature: Divides the cosine; lower values punish near misses more.

    Example:
        >>> critic = CosineCritic([2], [2])
        >>> critic.score(*critic.embed(torch.tensor([[[2.0, 0.0]]]), torch.tensor([[[3.0, 0.0]]])))
        tensor([[20.]])
    """

    def __init__(
        self, x_widths: Sequence[int], y_widths: Sequence[int], hidden: Sequence[int] = (), temperature: float = 0.05
    ) -> None:
        super().__init__()
        if list(x_widths) != list(y_widths):
            raise ValueError(f"x and y must have the same width for a cosine; got {[*x_widths]} and {[*y_widths]}")
        self.temperature = temperature

    def embed(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Scales rows to length 1."""
        return normalize(x, dim=-1), normalize(y, dim=-1)

    def score(self, a: Tensor, b: Tensor) -> Tensor:
        """Cosine of each pair over the temperature."""
        return (a * b).sum(-1) / self.temperature

    def cross(self, a: Tensor, b: Tensor) -> Tensor:
        """Cosines of all pairs over the temperature."""
        return torch.matmul(a, b.mT) / self.temperature
