"""Gaussian pairs, and the critic that knows the log ratio of their densities."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from offmap.dependence import Critic
from offmap.dependence.critics import cross_by_broadcasting

Array = NDArray[np.float64]


def correlated(rows: int, width: int, correlation: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Two variables of which each column is correlated with its partner."""
    x, noise = torch.randn(2, rows, width, generator=torch.Generator().manual_seed(seed))
    return x, correlation * x + math.sqrt(1 - correlation**2) * noise


def pairs(rows: int, width: int, correlation: float, seed: int = 0) -> tuple[Array, Array]:
    """The same as arrays."""
    x, y = correlated(rows, width, correlation, seed)
    return x.double().numpy(), y.double().numpy()


def information(width: int, correlation: float) -> float:
    return -0.5 * width * math.log(1 - correlation**2)


class TrueCritic(Critic):
    """The log ratio of ``correlated``, which no network could better, with ``shift`` added to it."""

    def __init__(
        self,
        x_widths: Sequence[int],
        y_widths: Sequence[int],
        hidden: Sequence[int],
        correlation: float = 0.8,
        shift: float = 0.0,
    ) -> None:
        super().__init__()
        self.correlation, self.shift = correlation, shift

    def embed(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x, y

    def score(self, a: Tensor, b: Tensor) -> Tensor:
        r = self.correlation
        quadratic = (r**2 * (a**2 + b**2) - 2 * r * a * b) / (2 * (1 - r**2))
        return -quadratic.sum(-1) + information(a.shape[-1], r) + self.shift

    def cross(self, a: Tensor, b: Tensor) -> Tensor:
        return cross_by_broadcasting(self, a, b)
