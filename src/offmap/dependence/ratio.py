"""Estimators that score pairs: a critic, and pairs of rows that were not drawn together."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from offmap.dependence.critics import CosineCritic, Critic, JointCritic, SeparableCritic
from offmap.dependence.estimator import Estimator, Width

CRITICS: dict[str, Callable[..., Critic]] = {
    "joint": JointCritic,
    "separable": SeparableCritic,
    "cosine": CosineCritic,
}


class RatioEstimator(Estimator):
    r"""An estimator by a critic $f(x, y)$, which tells pairs drawn together from pairs that were not.

    Args:
        x_width: Width of ``x``, or of each ``x`` of the stack.
        y_width: Width of ``y``, or of each ``y`` of the stack.
        hidden: Widths of the critic's hidden layers.
        critic: "joint", "separable" or "cosine", or what makes a ``Critic`` of (x widths, y widths, hidden).
    """

    def __init__(
        self,
        x_width: Width,
        y_width: Width,
        *,
        hidden: Sequence[int] = (256, 256),
        critic: str | Callable[..., Critic] = "joint",
    ) -> None:
        super().__init__(x_width, y_width)
        if isinstance(critic, str) and critic not in CRITICS:
            raise ValueError(f"critic must be among {', '.join(map(repr, CRITICS))}; got {critic!r}")
        make = CRITICS[critic] if isinstance(critic, str) else critic
        self.critic = make(self.x_widths, self.y_widths, tuple(hidden))


class DerangedEstimator(RatioEstimator):
    r"""A critic that meets each row of ``x`` with its own ``y`` and with the ``y`` of other rows, never its own again.

    A permutation that leaves no row in its place (a derangement) keeps true pairs out of the product of the margins;
    shuffling at random, or drawing with replacement, lets them in.

    Args:
        x_width: Width of ``x``, or of each ``x`` of the stack.
        y_width: Width of ``y``, or of each ``y`` of the stack.
        hidden: Widths of the critic's hidden layers.
        critic: "joint", "separable" or "cosine", or what makes a ``Critic`` of (x widths, y widths, hidden).
        negatives: Other rows that each row is paired with: as many, or "all".
    """

    def __init__(
        self,
        x_width: Width,
        y_width: Width,
        *,
        hidden: Sequence[int] = (256, 256),
        critic: str | Callable[..., Critic] = "joint",
        negatives: int | str = 1,
    ) -> None:
        super().__init__(x_width, y_width, hidden=hidden, critic=critic)
        if negatives != "all" and (not isinstance(negatives, int) or negatives < 1):
            raise ValueError(f"negatives must be an integer at least 1 or 'all'; got {negatives!r}")
        self.negatives = negatives

    def scores(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of the true pairs ``(terms, n)`` and of the others ``(terms, n, negatives)``.

        They are paired anew at random each time in training mode, and always alike in evaluation mode.
        """
        a, b = self.critic.embed(x, y)
        if self.negatives == "all":
            crossed = self.critic.cross(a, b)
            return crossed.diagonal(dim1=1, dim2=2), off_diagonal(crossed)
        rows = a.shape[1]
        places = derangements(rows, min(int(self.negatives), rows - 1), shuffled=self.training).to(a.device)
        return self.critic.score(a, b), self.critic.score(a.unsqueeze(2), b[:, places])


def off_diagonal(square: Tensor) -> Tensor:
    """The entries ``(terms, n, n - 1)`` of matrices ``(terms, n, n)`` beside the diagonal.

    Example:
        >>> off_diagonal(torch.arange(9).reshape(1, 3, 3))
        tensor([[[1, 2],
                 [3, 5],
                 [6, 7]]])
    """
    terms, rows, _ = square.shape
    # Without its last entry, the flat matrix has one of the diagonal at the head of each stretch of n + 1.
    stretches = square.flatten(1)[:, :-1].reshape(terms, rows - 1, rows + 1)
    return stretches[:, :, 1:].reshape(terms, rows, rows - 1)


def derangements(rows: int, count: int, *, shuffled: bool = True) -> Tensor:
    """For each row the places ``(rows, count)`` of others, no place twice in a row: each column is a derangement.

    Args:
        rows: How many rows.
        count: How many derangements, at the most ``rows - 1``.
        shuffled: Drawn at random from torch's generator; else as rows come, which suits rows in random order.

    Example:
        >>> derangements(4, 2, shuffled=False)
        tensor([[1, 2],
                [2, 3],
                [3, 0],
                [0, 1]])
    """
    order = torch.randperm(rows) if shuffled else torch.arange(rows)
    steps = torch.randperm(rows - 1)[:count] + 1 if shuffled else torch.arange(1, count + 1)
    places = torch.empty(rows, count, dtype=torch.long)
    places[order] = order[(torch.arange(rows)[:, None] + steps) % rows]
    return places
