"""Generator and critic networks, with or without a context.

The generator follows the gradient of the critic. The gradient of ReLU layers jumps, so the critic uses smooth layers.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from offmap.nets import mlp
from offmap.sampling.noise import GaussianNoise, MixtureNoise
from offmap.sampling.support import BoundaryTerms, BoxUnits, Squash, Support

# Multiplies the input noise of a residual generator, so that its layers can bend sharply from the first step.
_GAIN = 2.0


def smooth_mlp(widths: Sequence[int]) -> nn.Sequential:
    """Linear layers of the given widths with a SiLU after each but the last."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


def with_context(x: Tensor, context: Tensor | None) -> Tensor:
    """Appends the context ``(..., c)`` to each of the samples ``(..., n, d)`` that belong to it."""
    if context is None:
        return x
    return torch.cat([x, context.unsqueeze(-2).expand(*x.shape[:-1], context.shape[-1])], dim=-1)


class Generator(nn.Module):
    r"""Maps Gaussian noise to samples, $x = h_\theta(\varepsilon)$, optionally given a context.

    Args:
        noise_dim: Dimensions of the input noise.
        dim: Dimensions of a sample.
        hidden: Widths of the hidden layers.
        context_dim: Dimensions of the context, 0 for none.
        support: Lower and upper bounds of the samples.
        scale: Multiplies the samples (before they are squashed into the support), so that the layers work with
            numbers near 1.
        residual: Adds the output of ReLU layers to the noise itself. The untrained generator then passes the noise
            through, which covers every direction, and ReLUs give the sharp bends that distant modes need.
        components: Gaussians in the mixture that the noise is drawn from; 1 for standard Gaussian noise.

    Example:
        >>> generator = Generator(noise_dim=2, dim=3, context_dim=4, support=(-1.0, 1.0))
        >>> generator.draw(5, torch.zeros(7, 4)).shape
        torch.Size([7, 5, 3])
    """

    def __init__(
        self,
        noise_dim: int,
        dim: int,
        hidden: Sequence[int] = (128, 128),
        context_dim: int = 0,
        support: Support | None = None,
        scale: float = 1.0,
        residual: bool = False,
        components: int = 1,
    ) -> None:
        super().__init__()
        self.noise_dim = noise_dim
        self.noise = GaussianNoise(noise_dim) if components == 1 else MixtureNoise(components, noise_dim)
        self.scale = scale
        self.layers = (mlp if residual else smooth_mlp)([noise_dim + context_dim, *hidden, dim])
        self.skip = _identity_layer(noise_dim, dim) if residual else None
        self.squash: nn.Module = nn.Identity() if support is None else Squash(support)
        if residual:
            for tensor in self.layers[-1].parameters():
                nn.init.zeros_(tensor)

    def forward(self, noise: Tensor, context: Tensor | None = None) -> Tensor:
        """Maps noise ``(..., n, k)`` and contexts ``(..., c)`` to samples ``(..., n, d)``."""
        if self.skip is None:
            return self.squash(self.scale * self.layers(with_context(noise, context)))
        residual = self.layers(with_context(_GAIN * noise, context))
        return self.squash(self.scale * (self.skip(noise) + residual))

    def draw(self, n: int, context: Tensor | None = None, rng: torch.Generator | None = None) -> Tensor:
        """Draws ``n`` samples, for each context if there are any, from ``rng`` or else torch's global generator."""
        contexts = () if context is None else context.shape[:-1]
        return self(self.noise.draw((*contexts, n), self.device, rng), context)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.layers.parameters()).device


def _identity_layer(noise_dim: int, dim: int) -> nn.Linear:
    """A linear layer that starts as the identity on the dimensions that noise and samples share."""
    layer = nn.Linear(noise_dim, dim, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(dim, noise_dim))
    return layer


class Critic(nn.Module):
    r"""Estimates the log ratio $w_\phi(x) = \log p_r(x) / q_\theta(x)$ at points, optionally given a context.

    Args:
        dim: Dimensions of a point.
        hidden: Widths of the hidden layers.
        context_dim: Dimensions of the context, 0 for none.
        scale: Divides the points, so that the structure to be resolved is of size 1. On a bounded support it is in
            units of a quarter of the box, from its centre: the critic sees the same numbers wherever the box lies.
        support: Lower and upper bounds of the points, if they are bounded.
    """

    def __init__(
        self,
        dim: int,
        hidden: Sequence[int] = (128, 128),
        context_dim: int = 0,
        scale: float = 1.0,
        support: Support | None = None,
    ) -> None:
        super().__init__()
        self.scale = scale
        self.layers = smooth_mlp([dim + context_dim, *hidden, 1])
        self.units: nn.Module = nn.Identity() if support is None else BoxUnits(support)
        self.boundary = None if support is None else BoundaryTerms(dim, support)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Maps points ``(..., n, d)`` to ``(..., n)``."""
        w = self.layers(with_context(self.rescale(x), context))
        return (w if self.boundary is None else w + self.boundary(x)).squeeze(-1)

    def rescale(self, x: Tensor) -> Tensor:
        """The points in the units that the layers see."""
        scaled: Tensor = self.units(x) / self.scale
        return scaled
