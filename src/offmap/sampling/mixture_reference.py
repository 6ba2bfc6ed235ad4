"""A reference that follows each component of the generator's noise, where the noise is a mixture."""

import math
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from offmap.sampling.references import BetaReference, GaussianReference
from offmap.sampling.support import Support, unit_position

# Share that earlier samples lose per step in the moving moments.
_FORGET = 0.05
# Variance of a component before it has samples, in units of that of all samples.
_FIRST_VARIANCE = 0.1
# Mean and variance of a uniform distribution on [0, 1].
_UNIFORM = (1 / 2, 1 / 12)


@dataclass(frozen=True)
class ComponentMoments:
    """Counts, means and variances of the samples of each component.

    Args:
        counts: Samples seen, ``(k, 1)``; earlier ones count less.
        mean: Their means, ``(k, d)``.
        variance: Their variances.
    """

    counts: Tensor
    mean: Tensor
    variance: Tensor

    @classmethod
    def start(cls, x: Tensor, components: int) -> Self:
        """Every component starts as if it had had one sample, in the middle of ``x``."""
        variance, mean = torch.var_mean(x.detach(), dim=0, keepdim=True, correction=0)
        shape = (components, x.shape[1])
        return cls(x.new_ones(components, 1), mean.expand(shape), _FIRST_VARIANCE * variance.expand(shape))

    @torch.no_grad()
    def add(self, x: Tensor, component: Tensor, forget: float = _FORGET) -> Self:
        """Adds samples ``(n, d)`` of the given components ``(n,)``; earlier ones lose the share ``forget``."""
        earlier = (1 - forget) * self.counts
        counts = earlier.index_add(0, component, x.new_ones(len(x), 1))
        before = x - self.mean[component]
        mean = self.mean + torch.zeros_like(self.mean).index_add(0, component, before) / counts
        squares = (earlier * self.variance).index_add(0, component, before * (x - mean[component]))
        return type(self)(counts, mean, squares / counts)


@dataclass(frozen=True)
class MixtureReference:
    r"""A mixture with one part per component of the noise, and a broad part.

    $$p_r = (1 - s) \sum_k \pi_k\, p_k + s\, p_0$$

    The part $p_k$ has the moments of the samples of component $k$. So the mixture is close to the generator's density,
    and little is left for the critic to learn. The broad part puts reference points wherever samples may go.

    Args:
        parts: One Gaussian or Beta per component, with moments ``(k, 1, d)``.
        broad: The broad part $p_0$, with moments ``(1, 1, d)``.
        weights: The weights $\pi_k$, ``(k,)``.
        share: The share $s$ of the broad part.
    """

    parts: GaussianReference | BetaReference
    broad: GaussianReference | BetaReference
    weights: Tensor
    share: float

    @classmethod
    def of(cls, moments: ComponentMoments, weights: Tensor, support: Support | None, share: float) -> Self:
        """Makes the mixture from the moments of each component, on a box in units of the box."""
        mean, variance = moments.mean.unsqueeze(1), moments.variance.unsqueeze(1)
        if support is None:
            parts = GaussianReference(mean, variance + 1e-6)
            pi = weights[:, None, None]
            middle = (pi * mean).sum(0, keepdim=True)
            spread = (pi * (parts.variance + (mean - middle).square())).sum(0, keepdim=True)
            return cls(parts, GaussianReference(middle, spread), weights, share)
        low, high = (torch.as_tensor(bound, dtype=mean.dtype, device=mean.device) for bound in support)
        betas = BetaReference(mean, variance + 1e-4, low, high)
        middle, spread = (torch.full_like(mean[:1], moment) for moment in _UNIFORM)
        return cls(betas, BetaReference(middle, spread, low, high), weights, share)

    def draw(self, n: int) -> Tensor:
        """Draws ``n`` points, ``(n, d)``; every part has its share of them up to rounding."""
        shares = torch.cat([(1 - self.share) * self.weights, self.weights.new_tensor([self.share])])
        levels = (torch.arange(n, device=shares.device) + torch.rand((), device=shares.device)) / n
        part = torch.searchsorted(shares.cumsum(0), levels, right=True).clamp(max=len(shares) - 1)
        mean = torch.cat([self.parts.mean, self.broad.mean])[part]
        variance = torch.cat([self.parts.variance, self.broad.variance])[part]
        return replace(self.parts, mean=mean, variance=variance).draw(1).squeeze(1)

    def log_prob(self, x: Tensor) -> Tensor:
        """Returns the log density of each point ``(n, d)``."""
        by_part = log_densities(self.parts, x) + ((1 - self.share) * self.weights).log()[:, None]
        broad = log_densities(self.broad, x) + (math.log(self.share) if self.share else -math.inf)
        return torch.cat([by_part, broad]).logsumexp(0)


def log_densities(parts: GaussianReference | BetaReference, x: Tensor) -> Tensor:
    """The log density of each of ``k`` references, with moments ``(k, 1, d)``, at points ``(n, d)``: ``(k, n)``.

    For Betas this is one product of matrices, far quicker than the density of every part and dimension.
    """
    if isinstance(parts, GaussianReference):
        z = (x - parts.mean) * parts.variance.rsqrt()
        return -0.5 * (z.square() + (2 * math.pi * parts.variance).log()).sum(-1)
    width = parts.high - parts.low
    t = unit_position(x, parts.low, width)
    a, b = (shape.squeeze(1) for shape in parts.shapes())
    constants = ((a + b).lgamma() - a.lgamma() - b.lgamma() - width.log()).sum(1, keepdim=True)
    return torch.cat([a - 1, b - 1], dim=1) @ torch.cat([t.log(), torch.log1p(-t)], dim=1).T + constants
