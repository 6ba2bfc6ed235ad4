"""Nearest rows by batched products: exact, and as fast as the machine multiplies matrices."""

from typing import NamedTuple

import torch
from torch import Tensor

from offmap.scores.score import ROWS_PER_PRODUCT
from offmap.threads import side_by_side

# Reference rows per product. So many rows of 384 numbers stay in the processor's cache while all queries pass by.
_BLOCK = 2048
# Queries that pass by each block while it is there: the reference rows are read from memory once for so many.
ROWS_AT_ONCE = 8 * ROWS_PER_PRODUCT


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
    if torch.compiler.is_exporting():
        # Which rows of a block are ranked depends on the data, which a traced graph cannot express.
        return Neighbors(*(queries @ reference.T).topk(count, dim=1))
    workers = torch.get_num_threads() if queries.device.type == "cpu" else 1
    # Whole products per part, so that each row is multiplied with the same company as in one thread.
    rows = -(-len(queries) // (workers * ROWS_PER_PRODUCT)) * ROWS_PER_PRODUCT
    parts = queries.split(rows)
    found = list(side_by_side(lambda part: _search(part, reference, count), parts, min(workers, len(parts))))
    return Neighbors(*(torch.cat(each) for each in zip(*found, strict=True)))


def _search(queries: Tensor, reference: Tensor, count: int) -> Neighbors:
    found = Neighbors(
        queries.new_full((len(queries), count), -torch.inf), torch.zeros(len(queries), count, dtype=torch.int64)
    )
    room = queries.new_empty(ROWS_PER_PRODUCT, _BLOCK)
    for start in range(0, len(reference), _BLOCK):
        block = reference[start : start + _BLOCK]
        for first in range(0, len(queries), ROWS_PER_PRODUCT):
            rows = slice(first, first + ROWS_PER_PRODUCT)
            products = _product(queries[rows], block, room)
            _keep_nearer(Neighbors(found.cosine[rows], found.place[rows]), products, start)
    return found


def _product(queries: Tensor, block: Tensor, room: Tensor) -> Tensor:
    """All cosines, in the same memory for each block of full size."""
    if (len(queries), len(block)) != tuple(room.shape):
        return queries @ block.T
    return torch.mm(queries, block.T, out=room)


def _keep_nearer(found: Neighbors, products: Tensor, start: int) -> None:
    """Puts the largest products among those found before.

    Most blocks hold nothing nearer for most queries, which the largest product alone tells, much faster than ranks do.
    """
    better = (products.amax(dim=1) > found.cosine[:, -1]).nonzero()[:, 0]
    if not len(better):
        return
    count = found.cosine.shape[1]
    if count == 1:
        # Several times as fast as ranks.
        cosine, place = products.index_select(0, better).max(dim=1, keepdim=True)
        found.cosine[better], found.place[better] = cosine, place + start
        return
    new = products.index_select(0, better).topk(min(count, products.shape[1]), dim=1)
    cosine = torch.cat([found.cosine[better], new.values], dim=1)
    place = torch.cat([found.place[better], new.indices + start], dim=1)
    top = cosine.topk(count, dim=1)
    found.cosine[better], found.place[better] = top.values, place.gather(1, top.indices)
