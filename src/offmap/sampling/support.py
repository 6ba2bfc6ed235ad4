"""Bounded supports: boxes that samples must not leave."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Bound = float | tuple[float, ...] | Tensor
Support = tuple[Bound, Bound]

# Keeps logarithms finite where rounding has put a point on the boundary.
EDGE = 1e-6


def checked_support(support: Any, dim: int) -> Support | None:
    """Returns the lower and upper bounds as tensors, or raises a ``ValueError`` that says what is wrong with them.

    Args:
        support: Lower and upper bounds, each one number or ``dim`` numbers, as a tuple, a list or an array; None for
            no bounds.
        dim: Number of dimensions.

    Example:
        >>> checked_support((0, (1, 2)), dim=2)
        (tensor(0.), tensor([1., 2.]))
    """
    if support is None:
        return None
    low, high = _pair_of_bounds(support)
    if any(bound.shape not in ((), (dim,)) for bound in (low, high)):
        raise ValueError(f"support must hold one number or {dim} numbers per bound; got {_shown(support)}")
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ValueError(f"support must be finite, with every lower bound below its upper bound; got {_shown(support)}")
    return torch.as_tensor(low, dtype=torch.float32), torch.as_tensor(high, dtype=torch.float32)


def is_inside(x: Tensor, support: Support) -> Tensor:
    """Whether each point ``(n, d)`` lies in the box, its boundary included.

    Example:
        >>> is_inside(torch.tensor([[0.5], [1.0], [1.5]]), (0.0, 1.0))
        tensor([ True,  True, False])
    """
    low, high = (torch.as_tensor(bound, dtype=x.dtype, device=x.device) for bound in support)
    # Samples are squashed to low + width, which rounding may put just above high.
    highest = torch.maximum(high, low + (high - low))
    return ((x >= low) & (x <= highest)).all(-1)


def _pair_of_bounds(support: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    try:
        if not isinstance(support, tuple | list | np.ndarray | Tensor):
            raise TypeError
        low, high = (np.asarray(bound, dtype=float) for bound in support)
    except (TypeError, ValueError):
        raise ValueError(
            f"support must be a pair (lower, upper), such as (0, 1) or ((0, -1), (10, 1)); got {_shown(support)}"
        ) from None
    return low, high


def _shown(support: Any) -> str:
    """The value on one line, which arrays break."""
    return " ".join(repr(support).split())


def unit_position(x: Tensor, low: Tensor, width: Tensor) -> Tensor:
    """Maps points of a box to [0, 1], kept off both ends so that logarithms stay finite."""
    return ((x - low) / width).clamp(EDGE, 1 - EDGE)


class Squash(nn.Module):
    r"""Maps each coordinate into the support, $l + (h - l) (1 + \tanh z) / 2$."""

    low: Tensor
    width: Tensor

    def __init__(self, support: Support) -> None:
        super().__init__()
        register_box(self, support)

    def forward(self, z: Tensor) -> Tensor:
        """Maps unbounded points into the box."""
        return self.low + self.width * (1 + z.tanh()) / 2


class BoxUnits(nn.Module):
    """Maps a box to [-2, 2] in each dimension, so that a quarter of it has size 1."""

    low: Tensor
    width: Tensor

    def __init__(self, support: Support) -> None:
        super().__init__()
        register_box(self, support)

    def forward(self, x: Tensor) -> Tensor:
        """Maps points of the box."""
        return 4 * (x - self.low) / self.width - 2


class BoundaryTerms(nn.Module):
    r"""Learns what a smooth network cannot: log ratios that are steep at the boundary of a box.

    $$\sum_i \alpha_i \log t_i + \beta_i \log (1 - t_i)$$

    This is the log ratio of two Beta densities, where $t$ is the position of a point in the box, from 0 to 1.
    """

    low: Tensor
    width: Tensor

    def __init__(self, dim: int, support: Support) -> None:
        super().__init__()
        register_box(self, support)
        self.coefficients = nn.Linear(2 * dim, 1, bias=False)
        nn.init.zeros_(self.coefficients.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Returns one number per point, ``(..., n, 1)``."""
        t = unit_position(x, self.low, self.width)
        return self.coefficients(torch.cat([t.log(), torch.log1p(-t)], dim=-1))


def register_box(module: nn.Module, support: Support) -> None:
    """Stores the lower bound and the width of a box as the buffers ``low`` and ``width`` of a module."""
    low, high = (torch.as_tensor(bound, dtype=torch.float32) for bound in support)
    module.register_buffer("low", low)
    module.register_buffer("width", high - low)
