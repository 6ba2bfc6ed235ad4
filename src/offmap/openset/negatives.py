r"""Adaptive negative samples: points just outside each class, where its head is most easily fooled.

For a row $z$ of class $m$ with covariance $\Sigma_m$: start at $\delta \sim N(0, 4\,\mathrm{diag}\,\Sigma_m)$, take $k$
steps of normalised gradient ascent on the loss $\log(1 + e^{g_m(z + \delta)})$ of head $g_m$, and move $z + \delta$ along
its radius into the shell $r_m \le \|\delta\| \le \gamma r_m$.

Reference: Open World Classification with Adaptive Negative Samples, section 3.3.3 and algorithm 2.
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
    def around(cls, X: Tensor, y: Tensor, classes: int, *, radius: float | None, gamma: float) -> "Shell":
        r"""Measures the classes; without a given radius, $r_m = \sqrt{2\,\mathrm{Tr}\,\Sigma_m}$.

        That is the root mean square distance between two rows of the class (proposition 3.3.1). A class of one row
        has no spread of its own and gets the mean one.
        """
        variance = class_variance(X, y, classes)
        alone = (torch.bincount(y, minlength=classes) < 2)[:, None]
        # One variance for all if no class has two rows.
        shared = variance[~alone.squeeze(1)].mean(0) if not alone.all() else X.var(0, correction=0)
        variance = torch.where(alone, shared, variance)
        inner = (2 * variance.sum(1)).sqrt() if radius is None else variance.new_full((classes,), radius)
        return cls(variance.sqrt(), inner, gamma * inner)


def class_means(X: Tensor, y: Tensor, classes: int) -> Tensor:
    """The mean row of each class."""
    counts = torch.bincount(y, minlength=classes).clamp_min(1)[:, None]
    return X.new_zeros(classes, X.shape[1]).index_add_(0, y, X) / counts


def class_variance(X: Tensor, y: Tensor, classes: int) -> Tensor:
    """The variance of each feature within each class."""
    return class_means((X - class_means(X, y, classes)[y]).square(), y, classes)


def project(offset: Tensor, inner: Tensor, outer: Tensor) -> Tensor:
    """Moves each offset along its own direction to the nearest length from ``inner`` to ``outer``."""
    length = offset.norm(dim=-1, keepdim=True).clamp_min(torch.finfo(offset.dtype).tiny)
    return offset * (length.clamp(inner, outer) / length)


def ascend(logits: Callable[[Tensor], Tensor], rows: Tensor, offset: Tensor, steps: int, size: float) -> Tensor:
    """Moves each offset ``steps`` times by ``size`` in the direction in which its head's loss grows fastest."""
    for _ in range(steps):
        moved = (rows + offset).requires_grad_()
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(softplus(logits(moved)).sum(), moved)
        offset = offset + size * gradient / gradient.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    return offset


def draw_offsets(shell: Shell, count: int) -> Tensor:
    """Gaussian offsets ``(classes, count, d)`` with twice the deviation of each class."""
    classes, width = shell.deviation.shape
    return _START * shell.deviation[:, None, :] * torch.randn(classes, count, width, device=shell.deviation.device)
