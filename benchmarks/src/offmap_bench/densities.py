"""Target densities to compare samplers on: known up to a constant, with true samples and a window around their mass.

Their logarithms are differentiable functions of torch tensors ``(n, d)``, as the samplers need them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

# True samples are drawn from cells this many times finer than the bins they are counted in.
_FINER = 4
# Log density lost per unit of distance from the interval that a density lives on.
_FALL = 20.0


@dataclass(frozen=True)
class Density:
    """A density known up to a constant.

    Args:
        log_u: Maps points ``(n, d)`` to the logarithm of the density up to a constant, ``(n,)``.
        dim: Dimensions of a point.
        low: Lower bound, in each dimension, of a window that holds all but a negligible part of the mass.
        high: Upper bound of the window.
        bin: Width of the bins that points are counted in.
        bounded: Whether the density is zero outside the window.
        modes: Positions of the modes, ``(k, d)``, of a mixture of Gaussians.
        weights: Weights of the modes, ``(k,)``; equal if None.
        mode_sd: Standard deviation of each mode.
        exact: Draws true samples with a generator; if None they are drawn from a fine grid over the window.
    """

    log_u: Callable[[Tensor], Tensor]
    dim: int
    low: float
    high: float
    bin: float
    bounded: bool = False
    modes: Tensor | None = None
    weights: Tensor | None = None
    mode_sd: float | None = None
    exact: Callable[[int, torch.Generator], Tensor] | None = None

    @property
    def support(self) -> tuple[float, float] | None:
        """The bounds of a bounded density, as ``RAS`` takes them."""
        return (self.low, self.high) if self.bounded else None

    @property
    def bins(self) -> int:
        """Number of bins along one side of the window."""
        return round((self.high - self.low) / self.bin)

    def draw(self, n: int, seed: int = 0) -> Tensor:
        """Draws true samples; the same seed gives the same samples."""
        rng = torch.Generator().manual_seed(seed)
        return self._from_grid(n, rng) if self.exact is None else self.exact(n, rng)

    def masses(self, finer: int = 1) -> Tensor:
        """Probabilities of the cells of a grid over the window, with ``finer`` cells along the side of a bin."""
        side = self.bins * finer
        centres = self.low + (self.high - self.low) * (torch.arange(side, dtype=torch.float64) + 0.5) / side
        points = torch.cartesian_prod(*[centres] * self.dim).reshape(-1, self.dim)
        return self.log_u(points).softmax(0).reshape([side] * self.dim)

    def _from_grid(self, n: int, rng: torch.Generator) -> Tensor:
        """Draws cells by their probability and a uniform position in each."""
        masses = self.masses(_FINER)
        cells = torch.searchsorted(masses.flatten().cumsum(0), torch.rand(n, dtype=torch.float64, generator=rng))
        places = torch.stack(torch.unravel_index(cells.clamp(max=masses.numel() - 1), masses.shape), dim=1)
        return self.low + self.bin / _FINER * (places + torch.rand(n, self.dim, generator=rng))


def mixture(modes: Tensor, sd: float, low: float, high: float, bin: float, weights: Tensor | None = None) -> Density:
    """A mixture of Gaussians at ``modes`` with standard deviation ``sd``, of equal ``weights`` if there are none."""

    def draw(n: int, rng: torch.Generator) -> Tensor:
        if weights is None:
            rows = torch.randint(len(modes), (n,), generator=rng)
        else:
            rows = torch.multinomial(weights, n, replacement=True, generator=rng)
        return modes[rows] + sd * torch.randn(n, modes.shape[1], generator=rng)

    log_u = partial(_log_mixture, modes=modes, sd=sd, log_weights=None if weights is None else weights.log())
    return Density(log_u, modes.shape[1], low, high, bin, modes=modes, weights=weights, mode_sd=sd, exact=draw)


def _log_mixture(x: Tensor, modes: Tensor, sd: float, log_weights: Tensor | None = None) -> Tensor:
    distances = (x.unsqueeze(1) - modes.to(x)).square().sum(-1)
    exponents = -distances / (2 * sd**2)
    return torch.logsumexp(exponents if log_weights is None else exponents + log_weights.to(x), dim=1)


def ring_of_gaussians(count: int = 8, radius: float = 0.5, sd: float = 0.05) -> Density:
    """Gaussians on a circle; with eight it is the 8-GMM of the paper."""
    angles = 2 * math.pi * torch.arange(count) / count
    return mixture(radius * torch.stack([angles.cos(), angles.sin()], dim=1), sd, -1.0, 1.0, 0.01)


def grid_of_gaussians(side: int, step: float = 5.0, variance: float = 0.3) -> Density:
    """Gaussians on a square grid; sides of 3 and 5 give the 9-GMM and 25-GMM of the literature on samplers."""
    ticks = step * (torch.arange(side) - (side - 1) / 2)
    edge = step * (side + 1) / 2
    return mixture(torch.cartesian_prod(ticks, ticks), math.sqrt(variance), -edge, edge, edge / 100)


def forty_gaussians() -> Density:
    """Forty Gaussians with means drawn uniformly from a wide square.

    Reference: Midgley et al., Flow Annealed Importance Sampling Bootstrap, arXiv:2208.01893.
    """
    modes = 80 * (torch.rand(40, 2, generator=torch.Generator().manual_seed(0)) - 0.5)
    return mixture(modes, math.log1p(math.e), -50.0, 50.0, 0.5)


def two_arcs(radius: float = 2.0) -> Density:
    r"""Two arcs of a ring of radius $c$: pot1 of the paper with $c = 2$, pot1_hard with $c = 3$.

    $$-\log u = \tfrac12 \left(\frac{\|z\| - c}{0.4}\right)^2 - \log \sum_\pm e^{-((z_1 \pm c) / 0.6)^2 / 2}$$
    """

    def log_u(z: Tensor) -> Tensor:
        sides = [-0.5 * ((z[:, 0] - side) / 0.6).square() for side in (radius, -radius)]
        return torch.logaddexp(*sides) - 0.5 * ((z.norm(dim=1) - radius) / 0.4).square()

    return Density(log_u, 2, -5.0, 5.0, 0.02)


def wave() -> Density:
    r"""A band along a sine, pot2 of the paper: $-\log u = \tfrac12 ((z_2 - \sin(\pi z_1 / 2)) / 0.4)^2$ on a box."""

    def log_u(z: Tensor) -> Tensor:
        return -0.5 * ((z[:, 1] - (math.pi / 2 * z[:, 0]).sin()) / 0.4).square()

    return Density(log_u, 2, -5.0, 5.0, 0.02, bounded=True)


def rings(count: int = 4, sd: float = 0.15) -> Density:
    """Concentric rings of radius 1, 2, …, whose ridges all have the same height."""

    def log_u(z: Tensor) -> Tensor:
        radii = torch.arange(1, count + 1).to(z)
        return torch.logsumexp(-0.5 * ((z.norm(dim=1, keepdim=True) - radii) / sd).square(), dim=1)

    return Density(log_u, 2, -count - 1.0, count + 1.0, 0.05)


def funnel(dim: int = 10) -> Density:
    """Neal's funnel: the first coordinate has a standard deviation of 3 and is the log variance of the others."""

    def log_u(x: Tensor) -> Tensor:
        first, rest = x[:, 0], x[:, 1:]
        return -first.square() / 18 - 0.5 * (rest.square().sum(1) * (-first).exp() + (dim - 1) * first)

    def draw(n: int, rng: torch.Generator) -> Tensor:
        first = 3 * torch.randn(n, 1, generator=rng)
        return torch.cat([first, (first / 2).exp() * torch.randn(n, dim - 1, generator=rng)], dim=1)

    return Density(log_u, dim, -10.0, 10.0, 0.1, exact=draw)


def ramp() -> Density:
    r"""$u_1 = (1 - t) t^3$ with $t = x / 2 + \tfrac12$ on [−1, 1]."""
    return _on_interval(lambda t: (1 - t).log() + 3 * t.log())


def bowl() -> Density:
    r"""$u_2 = (1 - t)^{1/2} t^5 + (1 - t)^5 t^{1/2}$ with $t = x / 2 + \tfrac12$ on [−1, 1]."""
    return _on_interval(lambda t: torch.logaddexp(0.5 * (1 - t).log() + 5 * t.log(), 5 * (1 - t).log() + 0.5 * t.log()))


def _on_interval(log_u: Callable[[Tensor], Tensor]) -> Density:
    """A density on [−1, 1]; outside it falls exponentially from its value at the boundary.

    Unbounded samplers evaluate it there. A density that stayed at that value could not be integrated: samples would
    run off, however small the value.
    """
    edge = 1e-6

    def extended(x: Tensor) -> Tensor:
        inside = x[:, 0].clamp(-1, 1)
        return log_u((inside / 2 + 0.5).clamp(edge, 1 - edge)) - _FALL * (x[:, 0] - inside).abs()

    return Density(extended, 1, -1.0, 1.0, 0.001, bounded=True)


def falling_early(density: Density, margin: float, fall: float) -> Density:
    """The same density but for a ``margin`` inside its bounds, from where its logarithm falls with slope ``fall``.

    Next to a bound at which a density is zero, the slope of its logarithm has no limit. The few samples there would set
    the size of all steps that Adam takes, and a generator without bounds would all but stop to learn.
    """

    def log_u(x: Tensor) -> Tensor:
        inside = x.clamp(density.low + margin, density.high - margin)
        return density.log_u(inside) - fall * (x - inside).abs().sum(1)

    return replace(density, log_u=log_u)
