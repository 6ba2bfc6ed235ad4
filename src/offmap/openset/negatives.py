r"""Adaptive negative samples: points just outside each class, where its head is most easily fooled.

For a row $z$ of class $m$ with covariance $\Sigma_m$: start at $\delta \sim N(0, 4\,\mathrm{diag}\,\Sigma_m)$, take $k$
steps of normalised gradient ascent on the loss $\log(1 + e^{g_m(z + \delta)})$ of head $g_m$, and move $\delta$ along
its own direction into the shell $r_m \le \|\delta\| \le \gamma r_m$.

Reference: Bai et al., Open World Classification with Adaptive Negative Samples, arXiv:2303.05581, algorithm 1.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

# N(0, 4·diag Σ): twice the standard deviation.
_START = 2.0


@dataclass(frozen=True)
class Shell:
    """Where the negatives of each class lie: its spread, and the inner and outer radius around each of its rows."""

    deviation: Tensor
    inner: Tensor
    outer: Tensor

    @classmethod
    def around(cls, X: Tensor, y: Tensor, classes: int, *, radius: float | None = None, gamma: float = 2.0) -> "Shell":
        r"""Measures the classes; without a given radius, $r_m = \sqrt{2\,\mathrm{Tr}\,\Sigma_m}$.

        That is the root mean square distance between two rows of the class. A class of one row, or of equal ones, has
        no spread of its own and gets the mean one.
        """
        variance = class_variance(X, y, classes)
        alone = variance.sum(1) == 0
        # One variance for all if no class has a spread.
        shared = variance[~alone].mean(0) if not alone.all() else X.var(0, correction=0)
        variance = torch.where(alone[:, None], shared, variance)
        inner = (2 * variance.sum(1)).sqrt() if radius is None else variance.new_full((classes,), radius)
        return cls(variance.sqrt(), inner, gamma * inner)

    def start(self, codes: Tensor) -> Tensor:
        """Gaussian offsets with twice the deviation of the classes ``codes``, one for each code."""
        deviation = self.deviation[codes]
        return _START * deviation * torch.randn_like(deviation)

    def project(self, offset: Tensor, codes: Tensor) -> Tensor:
        """Moves each offset along its own direction to the nearest length from the inner to the outer radius."""
        length = offset.norm(dim=-1, keepdim=True).clamp_min(torch.finfo(offset.dtype).tiny)
        wanted = length.clamp(self.inner[codes].unsqueeze(-1), self.outer[codes].unsqueeze(-1))
        return offset * (wanted / length)

    def offsets(self, codes: Tensor) -> Tensor:
        """Random offsets into the shell of each code's class, without ascent."""
        return self.project(self.start(codes), codes)


def ascend(logits: Callable[[Tensor], Tensor], rows: Tensor, offset: Tensor, steps: int, size: float) -> Tensor:
    """Moves each offset ``steps`` times by ``size`` in the direction in which its head's loss grows fastest."""
    for _ in range(steps):
        moved = (rows + offset).requires_grad_()
        (gradient,) = torch.autograd.grad(softplus(logits(moved)).sum(), moved)
        offset = offset + size * gradient / gradient.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    return offset


def class_means(X: Tensor, y: Tensor, classes: int) -> Tensor:
    """The mean row of each class."""
    counts = torch.bincount(y, minlength=classes).clamp_min(1)[:, None]
    return X.new_zeros(classes, X.shape[1]).index_add_(0, y, X) / counts


def class_variance(X: Tensor, y: Tensor, classes: int) -> Tensor:
    """The variance of each feature within each class."""
    return class_means((X - class_means(X, y, classes)[y]).square(), y, classes)
