"""Estimators built on a critic, which scores pairs of rows."""

from abc import ABC
from collections.abc import Callable, Sequence

from torch import Tensor

from offmap import parameters
from offmap.dependence.critics import CosineCritic, Critic, JointCritic, SeparableCritic
from offmap.dependence.estimator import Estimator, Width
from offmap.nets.pairs import derangements, off_diagonal
from offmap.parameters import Count
from offmap.ratio import loss_on_p, loss_on_q

CRITICS: dict[str, Callable[..., Critic]] = {
    "joint": JointCritic,
    "separable": SeparableCritic,
    "cosine": CosineCritic,
}


class CriticEstimator(Estimator, ABC):
    r"""Base of the estimators with a critic $f(x, y)$, which is high for pairs drawn together.

    Args:
        x_width: Width of ``x``, or one width per term of a stack.
        y_width: Width of ``y``, or one width per term of a stack.
        hidden: Widths of the critic's hidden layers.
        critic: "joint", "separable", "cosine", or a callable that makes a ``Critic`` from (x widths, y widths, hidden).
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
        parameters.require("hidden", hidden, tuple[Count, ...])
        if isinstance(critic, str) and critic not in CRITICS:
            raise ValueError(f"critic must be one of {', '.join(map(repr, CRITICS))}; got {critic!r}")
        make = CRITICS[critic] if isinstance(critic, str) else critic
        self.critic = make(self.x_widths, self.y_widths, tuple(hidden))


class DerangedEstimator(CriticEstimator, ABC):
    r"""Base of the estimators that compare true pairs with negatives, made by derangements of the batch.

    Args:
        x_width: Width of ``x``, or one width per term of a stack.
        y_width: Width of ``y``, or one width per term of a stack.
        hidden: Widths of the critic's hidden layers.
        critic: "joint", "separable", "cosine", or a callable that makes a ``Critic`` from (x widths, y widths, hidden).
        n_negatives: Negatives per row: a number, or "all" for every other row of the batch. More lower the variance
            and cost time.
    """

    def __init__(
        self,
        x_width: Width,
        y_width: Width,
        *,
        hidden: Sequence[int] = (256, 256),
        critic: str | Callable[..., Critic] = "joint",
        n_negatives: int | str = 1,
    ) -> None:
        super().__init__(x_width, y_width, hidden=hidden, critic=critic)
        if n_negatives != "all" and (not isinstance(n_negatives, int) or n_negatives < 1):
            raise ValueError(f"n_negatives must be an integer at least 1, or 'all'; got {n_negatives!r}")
        self.n_negatives = n_negatives

    def scores(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Scores the true pairs ``(terms, n)`` and the negatives ``(terms, n, n_negatives)``.

        In training mode the negatives are drawn anew in each call; in evaluation mode they are always the same.
        """
        a, b = self.critic.embed(x, y)
        if self.n_negatives == "all":
            crossed = self.critic.cross(a, b)
            return crossed.diagonal(dim1=1, dim2=2), off_diagonal(crossed)
        rows = a.shape[1]
        places = derangements(rows, min(int(self.n_negatives), rows - 1), shuffled=self.training).to(a.device)
        return self.critic.score(a, b), self.critic.score(a.unsqueeze(2), b[:, places])


def pair_loss(true: Tensor, negatives: Tensor) -> Tensor:
    """Logistic density-ratio loss ``(terms,)`` of true pairs ``(terms, n)`` against negatives ``(terms, n, k)``."""
    return loss_on_p(true).mean(1) + loss_on_q(negatives).mean((1, 2))
