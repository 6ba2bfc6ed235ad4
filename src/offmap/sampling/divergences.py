r"""Objectives of a generator: increasing functions of the log ratio $w = \log p / q$, one per f-divergence.

Each f-divergence has a function $g(r)$ of the ratio $r = e^w$, written here as a function of $w$. All of them move
samples to where the target density exceeds the generator's; they differ in how much weight large ratios get.

Reference: Open-World Learning (thesis), table 5.2.1.
"""

from collections.abc import Callable
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from offmap.parameters import Limit

# Above this value the exponential of one sample would dominate the gradient of its batch.
_LARGEST = 5.0


def _reverse_kl(w: Tensor) -> Tensor:
    return w


def _kl(w: Tensor) -> Tensor:
    return _bounded(w).exp()


def _hellinger(w: Tensor) -> Tensor:
    return _bounded(w / 2).exp()


def _pearson(w: Tensor) -> Tensor:
    return _bounded(2 * w).exp() - 1


def _neyman(w: Tensor) -> Tensor:
    return -_bounded(-w).exp()


def _total_variation(w: Tensor) -> Tensor:
    """A smooth ½ sign(w): the gradient of the sign itself is zero wherever it exists."""
    return w.sigmoid() - 0.5


def _bounded(w: Tensor) -> Tensor:
    """Returns ``w`` below the limit; above it grows like a logarithm, so that its exponential grows linearly."""
    over = (w - _LARGEST).clamp(min=0)
    return torch.where(w > _LARGEST, _LARGEST + torch.log1p(over), w)


OBJECTIVES: dict[str, Callable[[Tensor], Tensor]] = {
    "reverse_kl": _reverse_kl,
    "kl": _kl,
    "hellinger": _hellinger,
    "total_variation": _total_variation,
    "pearson": _pearson,
    "neyman": _neyman,
    "gan": softplus,
    "non_saturating": logsigmoid,
}
Divergence = Annotated[str, Limit(f"among {', '.join(map(repr, OBJECTIVES))}", OBJECTIVES.__contains__)]
