"""Score networks: how much a pair looks like one that was drawn together."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from offmap.nets.stacked import StackedLinear, stacked_mlp


class Critic(nn.Module, ABC):
    """Scores pairs in two parts: each row is embedded once, then as many pairs are scored as are asked for.

    Rows are ``(terms, n, width)``: a stack of critics, one a term, works in one computation.
    """

    @abstractmethod
    def embed(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """What each row of ``x`` and each of ``y`` brings to its pairs, ``(terms, n, features)`` both."""

    @abstractmethod
    def score(self, a: Tensor, b: Tensor) -> Tensor:
        """The score of each pair of embedded rows ``(terms, …, features)``, whose shapes broadcast."""

    def cross(self, a: Tensor, b: Tensor) -> Tensor:
        """The scores ``(terms, n, m)`` of every embedded row of ``a`` with every one of ``b``."""
        return self.score(a.unsqueeze(-2), b.unsqueeze(-3))


class JointCritic(Critic):
    r"""A perceptron on the pair, $f(x, y) = \mathrm{mlp}([x, y])$, whose first layer sees each row once.

    Args:
        x_widths: Width of ``x`` of each term.
        y_widths: Width of ``y`` of each term.
        hidden: Widths of the hidden layers.

    Example:
        >>> critic = JointCritic([3], [2], hidden=(16,))
        >>> critic.cross(*critic.embed(torch.zeros(1, 5, 3), torch.zeros(1, 5, 2))).shape
        torch.Size([1, 5, 5])
    """

    def __init__(self, x_widths: Sequence[int], y_widths: Sequence[int], hidden: Sequence[int]) -> None:
        super().__init__()
        both = [before + after for before, after in zip(x_widths, y_widths, strict=True)]
        self.left = StackedLinear(x_widths, hidden[0], fan_in=both)
        # The two halves are one layer, which has one bias.
        self.right = StackedLinear(y_widths, hidden[0], fan_in=both, bias=False)
        self.rest = stacked_mlp([hidden[0]] * len(both), [*hidden[1:], 1])

    def embed(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The two halves of the first layer."""
        return self.left(x), self.right(y)

    def score(self, a: Tensor, b: Tensor) -> Tensor:
        """The other layers on the sum of the halves."""
        return self.rest((a + b).relu()).squeeze(-1)


class SeparableCritic(Critic):
    r"""The product of two embeddings, $f(x, y) = g(x) \cdot h(y)$: all pairs of a batch cost one matrix product.

    Args:
        x_widths: Width of ``x`` of each term.
        y_widths: Width of ``y`` of each term.
        hidden: Widths of the hidden layers of both.
        features: Width of the embeddings.

    Example:
        >>> critic = SeparableCritic([3], [2], hidden=(16,))
        >>> critic.cross(*critic.embed(torch.zeros(1, 5, 3), torch.zeros(1, 5, 2))).shape
        torch.Size([1, 5, 5])
    """

    def __init__(
        self, x_widths: Sequence[int], y_widths: Sequence[int], hidden: Sequence[int], features: int = 32
    ) -> None:
        super().__init__()
        self.g = stacked_mlp(x_widths, [*hidden, features])
        self.h = stacked_mlp(y_widths, [*hidden, features])

    def embed(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The two embeddings."""
        return self.g(x), self.h(y)

    def score(self, a: Tensor, b: Tensor) -> Tensor:
        """Their products, row by row."""
        return (a * b).sum(-1)

    def cross(self, a: Tensor, b: Tensor) -> Tensor:
        """Their products, all with all."""
        return a @ b.mT


class CosineCritic(Critic):
    r"""The cosine of the two rows over a temperature, as contrastive learning has it; nothing in it is learnt.

    Args:
        x_widths: Width of ``x`` of each term.
        y_widths: Width of ``y`` of each term: the same.
        hidden: Not used; critics are made alike.
        temperature: What the cosine is divided by.

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
            raise ValueError(f"x and y must be of the same width for a cosine; got {[*x_widths]} and {[*y_widths]}")
        self.temperature = temperature

    def embed(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The rows at length 1."""
        return normalize(x, dim=-1), normalize(y, dim=-1)

    def score(self, a: Tensor, b: Tensor) -> Tensor:
        """Cosines over the temperature, row by row."""
        return (a * b).sum(-1) / self.temperature

    def cross(self, a: Tensor, b: Tensor) -> Tensor:
        """Cosines over the temperature, all with all."""
        return torch.matmul(a, b.mT) / self.temperature
