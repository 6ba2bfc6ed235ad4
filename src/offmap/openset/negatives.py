r"""Synthetic negatives for ANS: points just outside each class, where its head is most likely to be wrong.

For a row $z$ of class $m$ with covariance $\Sigma_m$: start at $\delta \sim N(0, 4\,\mathrm{diag}\,\Sigma_m)$, take $k$
steps of normalised gradient ascent on the loss $\log(1 + e^{g_m(z + \delta)})$ of head $g_m$, and rescale $\delta$ so
that $r_m \le \|\delta\| \le \gamma r_m$. The negative is $z + \delta$.

The start is about $2\sqrt{\mathrm{Tr}\,\Sigma_m}$ long. A shell from $\sqrt{2\,\mathrm{Tr}\,\Sigma_m}$ to twice that
holds it already, and nothing would be rescaled.

Reference: Bai et al., Open World Classification with Adaptive Negative Samples, arXiv:2303.05581, algorithm 1.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from offmap.class_statistics import class_variance
from offmap.ratio import loss_on_q

# N(0, 4·diag Σ): twice the standard deviation.
_START = 2.0
# A thin shell: all negatives are about as far from their rows.
GAMMA = 1.05


@dataclass(frozen=True)
class Shell:
    """The shell around each row that holds its negatives, measured per class.

    Args:
        deviation: Standard deviation of each feature within each class, ``(classes, features)``.
        inner: Inner radius of the shell of each class.
        outer: Outer radius of the shell of each class.
    """

    deviation: Tensor
    inner: Tensor
    outer: Tensor

    @classmethod
    def around(
        cls,
        X: Tensor,
        y: Tensor,
        classes: int,
        *,
        radius: float | None = None,
        factor: float = 1.0,
        gamma: float = GAMMA,
    ) -> "Shell":
        r"""Measures the classes; without a given radius, $r_m = f \sqrt{2\,\mathrm{Tr}\,\Sigma_m}$ with a factor $f$.

        The square root is the root mean square distance between two rows of the class. A class without spread (a single
        row, or identical rows) gets the mean variance of the other classes.
        """
        variance = class_variance(X, y, classes)
        alone = variance.sum(1) == 0
        # If no class has a spread, the variance of all rows together.
        shared = variance[~alone].mean(0) if not alone.all() else X.var(0, correction=0)
        variance = torch.where(alone[:, None], shared, variance)
        inner = factor * (2 * variance.sum(1)).sqrt() if radius is None else variance.new_full((classes,), radius)
        return cls(variance.sqrt(), inner, gamma * inner)

    def start(self, codes: Tensor) -> Tensor:
        """Draws one Gaussian offset per code, with twice the standard deviation of its class."""
        deviation = self.deviation[codes]
        return _START * deviation * torch.randn_like(deviation)

    def project(self, offset: Tensor, codes: Tensor) -> Tensor:
        """Rescales each offset to the nearest length between the inner and the outer radius of its class."""
        length = offset.norm(dim=-1, keepdim=True).clamp_min(torch.finfo(offset.dtype).tiny)
        wanted = length.clamp(self.inner[codes].unsqueeze(-1), self.outer[codes].unsqueeze(-1))
        return offset * (wanted / length)

    def offsets(self, codes: Tensor) -> Tensor:
        """Draws one offset per code into the shell of its class, without gradient ascent."""
        return self.project(self.start(codes), codes)


def ascend(logits: Callable[[Tensor], Tensor], rows: Tensor, offset: Tensor, steps: int, size: Tensor) -> Tensor:
    """Moves each offset ``steps`` times by its ``size`` in the direction that increases its head's loss fastest.

    Args:
        logits: The heads: maps points to one logit each.
        rows: The rows that the offsets are added to.
        offset: Where to start.
        steps: Number of gradient steps.
        size: Length of each step, one per row.
    """
    for _ in range(steps):
        moved = (rows + offset).requires_grad_()
        (gradient,) = torch.autograd.grad(loss_on_q(logits(moved)).sum(), moved)
        direction = gradient / gradient.norm(dim=-1, keepdim=True).clamp_min(1e-12)
        offset = offset + size.unsqueeze(-1) * direction
    return offset
