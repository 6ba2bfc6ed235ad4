"""P-values by table look-up: the place of a score among the calibration scores, by a binary search of fixed depth."""

from math import ceil, log2

import numpy as np
import torch
from torch import Tensor, nn

from offmap.calibration import Promise, conditional_p_values
from offmap.calibration.conformal import p_values


def places(values: Tensor, wanted: Tensor, *, right: bool = False) -> Tensor:
    """How many of the ascending ``values`` lie below each of ``wanted``, as ``torch.searchsorted`` counts them.

    Every step halves the distance that is left, so that the graph has one step per bit of the number of values.

    Args:
        values: ``(k,)``, or one row per row of ``wanted``.
        wanted: Any shape, or ``(rows, n)``.
        right: Whether equal values count too.

    Example:
        >>> places(torch.tensor([1.0, 2.0, 2.0, 5.0]), torch.tensor([0.0, 2.0, 9.0]))
        tensor([0, 1, 4])
    """
    steps = ceil(log2(values.shape[-1] + 1))
    # Filled up with infinity, which lies below nothing: every place that a step may look at exists.
    filled = nn.functional.pad(values, (0, 2**steps - values.shape[-1]), value=torch.inf)
    found = torch.zeros_like(wanted, dtype=torch.int64)
    for step in (2**power for power in reversed(range(steps))):
        reached = found + step
        at = filled[reached - 1] if values.ndim == 1 else filled.gather(1, reached - 1)
        below = at <= wanted if right else at < wanted
        found = torch.where(below, reached, found)
    # Of infinities, the ones that were filled in do not count.
    return found.clamp(max=values.shape[-1])


class PValues(nn.Module):
    """Looks up the p-value of each score; rows as novel as all calibration rows get the smallest.

    Args:
        promise: The promise of the model.
    """

    calibration: Tensor
    table: Tensor

    def __init__(self, promise: Promise) -> None:
        super().__init__()
        scores = promise.calibration_novelty_
        self.register_buffer("calibration", torch.from_numpy(scores.copy()))
        self.register_buffer("table", torch.from_numpy(_by_place(promise)))

    def forward(self, novelty: Tensor) -> Tensor:
        """The p-value of each score."""
        return self.table[places(self.calibration, novelty)]


def _by_place(promise: Promise) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The p-value of a score with 0, 1, … calibration scores below it."""
    n = len(promise.calibration_novelty_)
    p = p_values(np.arange(float(n)), np.arange(n + 1.0))
    return p if promise.confidence is None else conditional_p_values(n, p, promise.confidence)
