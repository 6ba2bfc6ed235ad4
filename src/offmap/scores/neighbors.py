"""Nearest rows by batched products: exact, and as fast as the machine multiplies matrices."""

from typing import NamedTuple

import torch
from torch import Tensor

# Products of this many reference rows with one chunk of queries stay in the processor's cache.
_BLOCK = 1 << 14


class Neighbors(NamedTuple):
    """The nearest reference rows of each query: ``cosine``, nearest first, and ``place`` among the reference rows."""

    cosine: Tensor
    place: Tensor


def most_similar(queries: Tensor, reference: Tensor, count: int) -> Neighbors:
    """The ``count`` reference rows of the largest cosine with each query; both sides are rows of unit length.

    Example:
        >>> reference = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> most_similar(torch.tensor([[0.6, 0.8]]), reference, 1).place
        tensor([[1]])
    """
    best, where = [], []
    for start in range(0, len(reference), _BLOCK):
        block = reference[start : start + _BLOCK]
        found = (queries @ block.T).topk(min(count, len(block)), dim=1)
        best.append(found.values)
        where.append(found.indices + start)
    top = torch.cat(best, dim=1).topk(count, dim=1)
    return Neighbors(top.values, torch.cat(where, dim=1).gather(1, top.indices))
