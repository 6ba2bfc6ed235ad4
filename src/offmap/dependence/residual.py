"""A Gaussian log ratio, and a network that learns what is missing from it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from offmap.dependence.critic_estimator import DerangedEstimator, pair_loss
from offmap.dependence.critics import Critic, JointCritic, cross_by_broadcasting
from offmap.dependence.validation import FloatArray


@dataclass(frozen=True)
class GaussianRatio:
    r"""The log ratio of Gaussian densities, $x^\top A x + y^\top B y + x^\top C y + c$.

    Attributes:
        own: $A$ and $B$.
        cross: $C$.
        constant: $c$.
    """

    own: tuple[Tensor, Tensor]
    cross: Tensor
    constant: float

    @classmethod
    def fit(cls, x: FloatArray, y: FloatArray) -> "GaussianRatio":
        """Fits the Gaussians to the covariances of centred rows."""
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
    """Adds to a Gaussian log ratio a perceptron whose output is 0 before training.

    Args:
        ratios: The Gaussian log ratio of each term.
        x_widths: Width of ``x`` in each term.
        y_widths: Width of ``y`` in each term.
        hidden: Widths of the perceptron's hidden layers.
    """

    first: Tensor
    second: Tensor
    cross_terms: Tensor
    constant: Tensor
    x_width: Tensor
    y_width: Tensor

    def __init__(
        self,
        ratios: Sequence[GaussianRatio],
        x_widths: Sequence[int],
        y_widths: Sequence[int],
        hidden: Sequence[int],
    ) -> None:
        super().__init__()
        self.rest = JointCritic([width + 1 for width in x_widths], [width + 1 for width in y_widths], hidden)
        for parameter in self.rest.rest[-1].parameters():
            nn.init.zeros_(parameter)
        self.register_buffer("first", _stacked([ratio.own[0] for ratio in ratios]))
        self.register_buffer("second", _stacked([ratio.own[1] for ratio in ratios]))
        self.register_buffer("cross_terms", _stacked([ratio.cross for ratio in ratios]))
        self.register_buffer("constant", torch.tensor([ratio.constant for ratio in ratios])[:, None, None])
        self.register_buffer("x_width", torch.tensor(x_widths)[:, None, None])
        self.register_buffer("y_width", torch.tensor(y_widths)[:, None, None])
        self.features = hidden[0]

    def embed(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Appends to the perceptron's inputs the columns whose inner product is the Gaussian part."""
        a, b = self.rest.embed(_with_length(x, self.x_width), _with_length(y, self.y_width))
        left = ((x @ self.first) * x).sum(-1, keepdim=True) + self.constant
        right = ((y @ self.second) * y).sum(-1, keepdim=True)
        ones = torch.ones_like(left)
        return torch.cat([a, x @ self.cross_terms, left, ones], -1), torch.cat([b, y, ones, right], -1)

    def score(self, a: Tensor, b: Tensor) -> Tensor:
        """Sum of the Gaussian part and the perceptron."""
        ratio = (a[..., self.features :] * b[..., self.features :]).sum(-1)
        return ratio + self.residual(a, b)

    def cross(self, a: Tensor, b: Tensor) -> Tensor:
        """Scores all pairs."""
        return cross_by_broadcasting(self, a, b)

    def residual(self, a: Tensor, b: Tensor) -> Tensor:
        """The perceptron's part alone."""
        return self.rest.score(a[..., : self.features], b[..., : self.features])


def _stacked(matrices: Sequence[Tensor]) -> Tensor:
    """Stacks matrices of unequal shape, padded with zeros."""
    height, width = (max(matrix.shape[side] for matrix in matrices) for side in (0, 1))
    return torch.stack([pad(m, (0, width - m.shape[1], 0, height - m.shape[0])) for m in matrices])


def _with_length(rows: Tensor, width: Tensor) -> Tensor:
    """Appends the mean square of each row as a column, which a perceptron is slow to learn by itself."""
    return torch.cat([rows, rows.square().sum(-1, keepdim=True) / width - 1], -1)


class Residual(DerangedEstimator):
    """Trains a ``ResidualCritic`` like ``JS``; its value is what the perceptron adds to the Gaussian log ratio."""

    critic: ResidualCritic
    bound = None
    sound_to_maximise = False
    sound_to_minimise = False

    def _pointwise(self, x: Tensor, y: Tensor) -> Tensor:
        return self.critic.residual(*self.critic.embed(x, y))

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return pair_loss(*self.scores(x, y))
