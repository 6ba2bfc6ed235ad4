"""A Gaussian's log ratio and what a network finds to add to it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from offmap.dependence.critics import Critic, JointCritic
from offmap.dependence.door import FloatArray
from offmap.dependence.js import JS


@dataclass(frozen=True)
class GaussianRatio:
    r"""The log ratio of Gaussian densities, $x^\top A x + y^\top B y + x^\top C y + c$.

    Args:
        own: $A$ and $B$.
        cross: $C$.
        constant: $c$.
    """

    own: tuple[Tensor, Tensor]
    cross: Tensor
    constant: float

    @classmethod
    def fit(cls, x: FloatArray, y: FloatArray) -> "GaussianRatio":
        """The ratio of the Gaussians with the covariances of centred rows."""
        both = np.hstack([x, y])
        whole = both.T @ both / len(both)
        left, right = whole[: x.shape[1], : x.shape[1]], whole[x.shape[1] :, x.shape[1] :]
        precision = np.linalg.inv(whole)
        gap = -0.5 * precision
        gap[: len(left), : len(left)] += 0.5 * np.linalg.inv(left)
        gap[len(left) :, len(left) :] += 0.5 * np.linalg.inv(right)
        logs = [float(np.linalg.slogdet(part)[1]) for part in (left, right, whole)]
        parts = torch.from_numpy(gap).float()
        own = (parts[: len(left), : len(left)], parts[len(left) :, len(left) :])
        return cls(own, 2 * parts[: len(left), len(left) :], 0.5 * (logs[0] + logs[1] - logs[2]))


class ResidualCritic(Critic):
    """A Gaussian's log ratio plus a perceptron that is 0 before it learns.

    Args:
        ratio: Of the Gaussians.
        x_widths: Width of ``x``: one, as a single pair of variables has.
        y_widths: Width of ``y``: one.
        hidden: Widths of the perceptron's hidden layers.
    """

    first: Tensor
    second: Tensor
    cross_terms: Tensor

    def __init__(
        self, ratio: GaussianRatio, x_widths: Sequence[int], y_widths: Sequence[int], hidden: Sequence[int]
    ) -> None:
        super().__init__()
        self.rest = JointCritic([x_widths[0] + 1], [y_widths[0] + 1], hidden)
        for parameter in self.rest.rest[-1].parameters():
            nn.init.zeros_(parameter)
        self.register_buffer("first", ratio.own[0])
        self.register_buffer("second", ratio.own[1])
        self.register_buffer("cross_terms", ratio.cross)
        self.constant = ratio.constant
        self.features = hidden[0]

    def embed(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """What the perceptron sees of each row, and what makes the Gaussian's part as one product of both."""
        a, b = self.rest.embed(_with_length(x), _with_length(y))
        left = ((x @ self.first) * x).sum(-1, keepdim=True) + self.constant
        right = ((y @ self.second) * y).sum(-1, keepdim=True)
        ones = torch.ones_like(left)
        return torch.cat([a, x @ self.cross_terms, left, ones], -1), torch.cat([b, y, ones, right], -1)

    def score(self, a: Tensor, b: Tensor) -> Tensor:
        """The sum of both parts."""
        ratio = (a[..., self.features :] * b[..., self.features :]).sum(-1)
        return ratio + self.residual(a, b)

    def residual(self, a: Tensor, b: Tensor) -> Tensor:
        """The perceptron's part."""
        return self.rest.score(a[..., : self.features], b[..., : self.features])


def _with_length(rows: Tensor) -> Tensor:
    """Rows with their mean square as one more column, which a perceptron is slow to find by itself."""
    return torch.cat([rows, rows.square().mean(-1, keepdim=True) - 1], -1)


class Residual(JS):
    """JS whose critic starts as a Gaussian's log ratio; its value is what the perceptron adds to that."""

    critic: ResidualCritic

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self.critic.residual(*self.critic.embed(x, y))
