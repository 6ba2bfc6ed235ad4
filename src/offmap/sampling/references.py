"""Reference distributions: easy to draw from, with a known density and the moments of the generator's samples.

Samples are ``(..., n, d)``: ``n`` points of ``d`` dimensions, for each of the contexts ``...`` if there are any. A
reference has one set of moments a context.
"""

import math
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor
from torch.distributions import Beta, Normal

Bound = float | tuple[float, ...] | Tensor
Support = tuple[Bound, Bound]

# Keeps the logarithms of a Beta density finite where rounding has put a point on the edge of the box.
_EDGE = 1e-6


class Reference(Protocol):
    """What the critic compares the generator with."""

    def draw(self, n: int) -> Tensor:
        """``n`` points a context, ``(..., n, d)``."""

    def log_prob(self, x: Tensor) -> Tensor:
        """Log density of each point of ``(..., n, d)``, over all its dimensions."""

    def toward(self, other: Self, weight: float) -> Self:
        """The reference whose moments lie the share ``weight`` of the way to those of ``other``."""


def place_in_box(x: Tensor, low: Tensor, width: Tensor) -> Tensor:
    """Where points lie between the edges of a box, from 0 to 1 and never on either, so that logarithms are finite."""
    return ((x - low) / width).clamp(_EDGE, 1 - _EDGE)


def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of each dimension over the samples of each context, ``(..., 1, d)``, without a gradient."""
    variance, mean = torch.var_mean(x.detach(), dim=-2, keepdim=True, correction=0)
    return mean, variance


@dataclass(frozen=True)
class GaussianReference:
    r"""A Gaussian with a diagonal covariance, $p_r = \prod_i N(x_i; \mu_i, \sigma_i^2)$.

    Args:
        mean: Means, ``(..., 1, d)``.
        variance: Variances, of the same shape.

    Example:
        >>> reference = GaussianReference.of(torch.tensor([[0.0], [2.0]]))
        >>> reference.mean, reference.variance
        (tensor([[1.]]), tensor([[1.0000]]))
    """

    mean: Tensor
    variance: Tensor

    @classmethod
    def of(cls, x: Tensor, extra_variance: float = 1e-6) -> Self:
        """The Gaussian with the moments of ``x``; ``extra_variance`` keeps it proper where all samples agree."""
        mean, variance = moments(x)
        return cls(mean, variance + extra_variance)

    def toward(self, other: Self, weight: float) -> Self:
        """The Gaussian whose moments lie the share ``weight`` of the way to those of ``other``."""
        return type(self)(self.mean.lerp(other.mean, weight), self.variance.lerp(other.variance, weight))

    def draw(self, n: int) -> Tensor:
        """``n`` points a context."""
        *contexts, _, d = self.mean.shape
        return self.mean + self.variance.sqrt() * torch.randn(*contexts, n, d, device=self.mean.device)

    def log_prob(self, x: Tensor) -> Tensor:
        """Log density of each point."""
        return Normal(self.mean, self.variance.sqrt(), validate_args=False).log_prob(x).sum(-1)


@dataclass(frozen=True)
class BetaReference:
    r"""A generalised Beta on the box $[l, h]$, each dimension by itself, by the method of moments.

    With the mean $m$ and variance $v$ of $t = (x - l) / (h - l)$,

    $$a = m \left( \frac{m (1 - m)}{v} - 1 \right), \qquad b = (1 - m) \left( \frac{m (1 - m)}{v} - 1 \right).$$

    A narrow Beta has next to no mass at the edges, and where it has none the critic cannot tell by how much samples
    outnumber it: the generator could gather them there unpunished. So a share of each dimension may be spread evenly.

    Args:
        mean: Means in units of the box, ``(..., 1, d)``.
        variance: Variances likewise.
        low: Lower edges of the box.
        high: Upper edges.
        even: Share that is spread evenly over the box, whatever the moments.

    Reference: Open-World Learning (thesis), section 5.3.

    Example:
        >>> reference = BetaReference.of(torch.tensor([[-0.5], [0.5]]), -1.0, 1.0, extra_variance=0.0)
        >>> reference.shapes()
        (tensor([[1.5000]]), tensor([[1.5000]]))
    """

    mean: Tensor
    variance: Tensor
    low: Tensor
    high: Tensor
    even: float = 0.0

    @classmethod
    def of(cls, x: Tensor, low: Bound, high: Bound, extra_variance: float = 1e-4, even: float = 0.0) -> Self:
        """The Beta with the moments of ``x``; ``extra_variance`` keeps it broad where all samples agree."""
        bottom, top = (torch.as_tensor(bound, dtype=x.dtype, device=x.device) for bound in (low, high))
        mean, variance = moments((x - bottom) / (top - bottom))
        return cls(mean, variance + extra_variance, bottom, top, even)

    def toward(self, other: Self, weight: float) -> Self:
        """The Beta whose moments lie the share ``weight`` of the way to those of ``other``."""
        mean, variance = self.mean.lerp(other.mean, weight), self.variance.lerp(other.variance, weight)
        return type(self)(mean, variance, self.low, self.high, self.even)

    def shapes(self) -> tuple[Tensor, Tensor]:
        """The parameters $a$ and $b$; Beta(2, 2) where no Beta has these moments."""
        spread = self.mean * (1 - self.mean)
        total = spread / self.variance - 1
        possible = total > 0
        a, b = (torch.where(possible, share * total, 2.0) for share in (self.mean, 1 - self.mean))
        return a, b

    def draw(self, n: int) -> Tensor:
        """``n`` points a context."""
        *contexts, _, d = self.mean.shape
        a, b = (shape.expand(*contexts, n, d) for shape in self.shapes())
        t = Beta(a, b, validate_args=False).sample()
        if self.even:
            t = torch.where(torch.rand_like(t) < self.even, torch.rand_like(t), t)
        t = t.clamp(_EDGE, 1 - _EDGE)
        return self.low + (self.high - self.low) * t

    def log_prob(self, x: Tensor) -> Tensor:
        """Log density of each point."""
        width = self.high - self.low
        t = place_in_box(x, self.low, width)
        log_p = Beta(*self.shapes(), validate_args=False).log_prob(t)
        if self.even:
            flat = torch.full_like(log_p, math.log(self.even))
            log_p = torch.logaddexp(log_p + math.log1p(-self.even), flat)
        return (log_p - width.log()).sum(-1)


def reference_of(x: Tensor, support: Support | None, even: float = 0.0) -> GaussianReference | BetaReference:
    """The reference with the moments of ``x``: a Beta on a bounded support, ``even`` in part, else a Gaussian."""
    return GaussianReference.of(x) if support is None else BetaReference.of(x, *support, even=even)
