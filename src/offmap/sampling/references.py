"""Reference distributions: easy to draw from, with a known density and the moments of the generator's samples.

Samples have the shape ``(..., n, d)``: ``n`` points of ``d`` dimensions for each of the contexts ``...``, if there are
any. A reference has one mean and one variance per context and dimension.
"""

import math
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor
from torch.distributions import Beta, Normal

from offmap.sampling.support import EDGE, Bound, Support, unit_position


class Reference(Protocol):
    """The distribution that the critic compares the generator's samples with."""

    def draw(self, n: int) -> Tensor:
        """Draws ``n`` points per context, ``(..., n, d)``."""

    def log_prob(self, x: Tensor) -> Tensor:
        """Returns the joint log density of each point ``(..., n, d)``."""


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
        >>> reference = GaussianReference.fit(torch.tensor([[0.0], [2.0]]))
        >>> reference.mean, reference.variance
        (tensor([[1.]]), tensor([[1.0000]]))
    """

    mean: Tensor
    variance: Tensor

    @classmethod
    def fit(cls, x: Tensor, extra_variance: float = 1e-6) -> Self:
        """Fits the Gaussian to the moments of ``x``; ``extra_variance`` keeps the variance above 0."""
        mean, variance = moments(x)
        return cls(mean, variance + extra_variance)

    def toward(self, other: Self, weight: float) -> Self:
        """Interpolates the moments: 0 gives this Gaussian, 1 gives ``other``."""
        return type(self)(self.mean.lerp(other.mean, weight), self.variance.lerp(other.variance, weight))

    def draw(self, n: int, rng: torch.Generator | None = None) -> Tensor:
        """Draws ``n`` points per context, from ``rng`` or else torch's global generator."""
        *contexts, _, d = self.mean.shape
        noise = torch.randn(*contexts, n, d, device=self.mean.device, generator=rng)
        return self.mean + self.variance.sqrt() * noise

    def log_prob(self, x: Tensor) -> Tensor:
        """Returns the log density of each point."""
        return Normal(self.mean, self.variance.sqrt(), validate_args=False).log_prob(x).sum(-1)


@dataclass(frozen=True)
class BetaReference:
    r"""A generalised Beta on the box $[l, h]$, with independent dimensions, fitted by the method of moments.

    With the mean $m$ and variance $v$ of $t = (x - l) / (h - l)$,

    $$a = m \left( \frac{m (1 - m)}{v} - 1 \right), \qquad b = (1 - m) \left( \frac{m (1 - m)}{v} - 1 \right).$$

    A narrow Beta has almost no mass near the boundary. There the critic sees samples but no reference points, so it
    cannot tell how large their ratio is, and the generator may pile up samples at no cost. A share of each dimension
    can therefore be uniform.

    Args:
        mean: Means of $t$, ``(..., 1, d)``.
        variance: Variances of $t$, of the same shape.
        low: Lower bounds of the box.
        high: Upper bounds of the box.
        uniform_share: Weight of a uniform distribution over the box that is mixed with the Beta.

    Reference: Open-World Learning (thesis), section 5.3.

    Example:
        >>> reference = BetaReference.fit(torch.tensor([[-0.5], [0.5]]), -1.0, 1.0, extra_variance=0.0)
        >>> reference.shapes()
        (tensor([[1.5000]]), tensor([[1.5000]]))
    """

    mean: Tensor
    variance: Tensor
    low: Tensor
    high: Tensor
    uniform_share: float = 0.0

    @classmethod
    def fit(cls, x: Tensor, low: Bound, high: Bound, extra_variance: float = 1e-4, uniform_share: float = 0.0) -> Self:
        """Fits the Beta to the moments of ``x``; ``extra_variance`` keeps it broad where all samples agree."""
        bottom, top = (torch.as_tensor(bound, dtype=x.dtype, device=x.device) for bound in (low, high))
        mean, variance = moments((x - bottom) / (top - bottom))
        return cls(mean, variance + extra_variance, bottom, top, uniform_share)

    def toward(self, other: Self, weight: float) -> Self:
        """Interpolates the moments: 0 gives this Beta, 1 gives ``other``."""
        mean, variance = self.mean.lerp(other.mean, weight), self.variance.lerp(other.variance, weight)
        return type(self)(mean, variance, self.low, self.high, self.uniform_share)

    def shapes(self) -> tuple[Tensor, Tensor]:
        """Returns the parameters $a$ and $b$; Beta(2, 2) where no Beta has these moments."""
        spread = self.mean * (1 - self.mean)
        total = spread / self.variance - 1
        possible = total > 0
        a, b = (torch.where(possible, share * total, 2.0) for share in (self.mean, 1 - self.mean))
        return a, b

    def draw(self, n: int) -> Tensor:
        """Draws ``n`` points per context."""
        *contexts, _, d = self.mean.shape
        a, b = (shape.expand(*contexts, n, d) for shape in self.shapes())
        t = Beta(a, b, validate_args=False).sample()
        if self.uniform_share:
            t = torch.where(torch.rand_like(t) < self.uniform_share, torch.rand_like(t), t)
        t = t.clamp(EDGE, 1 - EDGE)
        return self.low + (self.high - self.low) * t

    def log_prob(self, x: Tensor) -> Tensor:
        """Returns the log density of each point."""
        width = self.high - self.low
        t = unit_position(x, self.low, width)
        log_p = Beta(*self.shapes(), validate_args=False).log_prob(t)
        if self.uniform_share:
            uniform = torch.full_like(log_p, math.log(self.uniform_share))
            log_p = torch.logaddexp(log_p + math.log1p(-self.uniform_share), uniform)
        return (log_p - width.log()).sum(-1)


def fit_reference(x: Tensor, support: Support | None, uniform_share: float = 0.0) -> GaussianReference | BetaReference:
    """Fits a reference to the moments of ``x``: a Beta on a bounded support, else a Gaussian."""
    return GaussianReference.fit(x) if support is None else BetaReference.fit(x, *support, uniform_share=uniform_share)
