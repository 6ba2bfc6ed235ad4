r"""The increasing functions $g_0$ of a log ratio $w = \log p / q$ that a generator can climb.

Each f-divergence has its own $g(r)$ of the ratio $r = e^w$, written here as a function of $w$. All of them push samples
to where the target outweighs the generator; they differ in how much the places that count most outweigh the others.

Reference: Open-World Learning (thesis), table 5.2.1.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

Link = Literal["reverse-kl", "kl", "hellinger", "pearson", "gan", "non-saturating"]

# Beyond this, the exponentials of one sample would drown all the others of its batch.
_LARGEST = 5.0


def _reverse_kl(w: Tensor) -> Tensor:
    return w


def _kl(w: Tensor) -> Tensor:
    return _bounded(w).exp()


def _hellinger(w: Tensor) -> Tensor:
    return _bounded(w / 2).exp()


def _pearson(w: Tensor) -> Tensor:
    return _bounded(2 * w).exp() - 1


def _bounded(w: Tensor) -> Tensor:
    """``w`` up to a limit, and from there on growing so slowly that its exponential grows like ``w`` itself."""
    over = (w - _LARGEST).clamp(min=0)
    return torch.where(w > _LARGEST, _LARGEST + torch.log1p(over), w)


LINKS: dict[str, Callable[[Tensor], Tensor]] = {
    "reverse-kl": _reverse_kl,
    "kl": _kl,
    "hellinger": _hellinger,
    "pearson": _pearson,
    "gan": softplus,
    "non-saturating": logsigmoid,
}
