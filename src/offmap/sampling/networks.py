"""The generator, the critic and the inverse of the generator, with a context if asked.

The generator follows the *slope* of the critic. Rectified units have slopes that jump, so smooth ones are used there.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from offmap.nets import mlp
from offmap.sampling.references import Support, place_in_box

# Multiplies the noise that a residual generator bends, so that it can bend sharply from the start.
_GAIN = 2.0


def smooth_mlp(widths: Sequence[int]) -> nn.Sequential:
    """Linear layers of the given widths with a SiLU after each but the last."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


def with_context(x: Tensor, context: Tensor | None) -> Tensor:
    """Joins the context ``(..., c)`` to each of the samples ``(..., n, d)`` drawn for it."""
    if context is None:
        return x
    return torch.cat([x, context.unsqueeze(-2).expand(*x.shape[:-1], context.shape[-1])], dim=-1)


def register_box(module: nn.Module, support: Support) -> None:
    """Gives a module the buffers ``low`` and ``width`` of a box."""
    low, high = (torch.as_tensor(bound, dtype=torch.float32) for bound in support)
    module.register_buffer("low", low)
    module.register_buffer("width", high - low)


class Box(nn.Module):
    r"""Squashes each number into the support, $l + (h - l) (1 + \tanh z) / 2$."""

    low: Tensor
    width: Tensor

    def __init__(self, support: Support) -> None:
        super().__init__()
        register_box(self, support)

    def forward(self, z: Tensor) -> Tensor:
        """Points of the box."""
        return self.low + self.width * (1 + z.tanh()) / 2


class Generator(nn.Module):
    r"""Turns Gaussian noise into samples, $x = h_\theta(\varepsilon)$, given a context if it has one.

    Args:
        noise: Width of the noise.
        outputs: Dimensions of a sample.
        hidden: Widths of the hidden layers.
        context: Width of the context, 0 for none.
        support: Lower and upper edges of the box that samples lie in.
        scale: Multiplies the samples (before they are squashed), so that the network works with numbers near 1.
        residual: Adds to the noise itself, with rectified units. Before training, the noise passes as it is, so that
            every direction is open; and modes far apart need a map with sharp bends.

    Example:
        >>> generator = Generator(noise=2, outputs=3, context=4, support=(-1.0, 1.0))
        >>> generator.draw(5, torch.zeros(7, 4)).shape
        torch.Size([7, 5, 3])
    """

    def __init__(
        self,
        noise: int,
        outputs: int,
        hidden: Sequence[int] = (128, 128),
        context: int = 0,
        support: Support | None = None,
        scale: float = 1.0,
        residual: bool = False,
    ) -> None:
        super().__init__()
        self.noise = noise
        self.scale = scale
        self.layers = (mlp if residual else smooth_mlp)([noise + context, *hidden, outputs])
        self.skip = _passing_on(noise, outputs) if residual else None
        self.squash = nn.Identity() if support is None else Box(support)
        if residual:
            for tensor in self.layers[-1].parameters():
                nn.init.zeros_(tensor)

    def forward(self, noise: Tensor, context: Tensor | None = None) -> Tensor:
        """Samples ``(..., n, d)`` from noise ``(..., n, k)`` and contexts ``(..., c)``."""
        if self.skip is None:
            return self.squash(self.scale * self.layers(with_context(noise, context)))
        bent = self.layers(with_context(_GAIN * noise, context))
        return self.squash(self.scale * (self.skip(noise) + bent))

    def draw(self, n: int, context: Tensor | None = None) -> Tensor:
        """``n`` samples, for each of the contexts if there are any."""
        contexts = () if context is None else context.shape[:-1]
        device = next(self.parameters()).device
        return self(torch.randn(*contexts, n, self.noise, device=device), context)


def _passing_on(noise: int, outputs: int) -> nn.Linear:
    """A layer that passes on as much of the noise as there is room for."""
    layer = nn.Linear(noise, outputs, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(outputs, noise))
    return layer


class Critic(nn.Module):
    r"""Grades points, given a context if it has one; fitted, it is $w_\phi(x) = \log p_r(x) / q_\theta(x)$.

    Args:
        inputs: Dimensions of a point.
        hidden: Widths of the hidden layers.
        context: Width of the context, 0 for none.
        scale: Divides the points, so that what is to be told apart is of the order of 1.
        support: Lower and upper edges of the box that the points lie in, if they do.
    """

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int] = (128, 128),
        context: int = 0,
        scale: float = 1.0,
        support: Support | None = None,
    ) -> None:
        super().__init__()
        self.scale = scale
        self.layers = smooth_mlp([inputs + context, *hidden, 1])
        self.edges = None if support is None else Edges(inputs, support)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """One number a point, ``(..., n)``."""
        w = self.layers(with_context(x / self.scale, context))
        return (w if self.edges is None else w + self.edges(x)).squeeze(-1)


class Edges(nn.Module):
    r"""What a smooth network cannot be: steep at the edges of a box.

    $$\sum_i \alpha_i \log t_i + \beta_i \log (1 - t_i)$$

    This is the form of the log ratio of two Betas, with $t$ the place of a point in units of the box.
    """

    low: Tensor
    width: Tensor

    def __init__(self, inputs: int, support: Support) -> None:
        super().__init__()
        register_box(self, support)
        self.slopes = nn.Linear(2 * inputs, 1, bias=False)
        nn.init.zeros_(self.slopes.weight)

    def forward(self, x: Tensor) -> Tensor:
        """One number a point, ``(..., n, 1)``."""
        t = place_in_box(x, self.low, self.width)
        return self.slopes(torch.cat([t.log(), torch.log1p(-t)], dim=-1))
