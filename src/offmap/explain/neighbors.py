"""The nearest normal rows of each row: what it is compared with, and what replaces its parts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.explain.composition import FloatArray, Indices, Mask


@dataclass(frozen=True, eq=False)
class Neighbors:
    """Reference rows, the nearest first, one line per row to explain.

    Args:
        index: Their positions among the reference rows; the last is repeated where there are too few.
        distance: Their distances.
    """

    index: Indices
    distance: FloatArray


def nearest(distances: FloatArray, allowed: Mask, count: int) -> Neighbors:
    """Finds the ``count`` nearest reference rows among those that are ``allowed`` for each row.

    Args:
        distances: One line per row to explain, one column per reference row.
        allowed: Which of them may be taken. A row for which none is allowed may have
            any that is allowed for some row.
        count: How many.
    """
    allowed = np.where(allowed.any(axis=1, keepdims=True), allowed, allowed.any(axis=0))
    distances = np.where(allowed, distances, np.inf)
    count = min(count, distances.shape[1])
    index = np.argsort(distances, axis=1, kind="stable")[:, :count]
    found = np.take_along_axis(distances, index, axis=1)
    last = np.maximum(np.isfinite(found).sum(axis=1, keepdims=True) - 1, 0)
    filled = np.minimum(np.arange(count)[None], last)
    return Neighbors(np.take_along_axis(index, filled, axis=1), np.take_along_axis(found, filled, axis=1))


def allowed_rows(
    normal: Mask, rows: int, entities: NDArray[Any] | None, reference_entities: NDArray[Any] | None
) -> Mask:
    """Which reference rows each row may be compared with: normal ones, of the same entity where there are entities."""
    allowed = np.broadcast_to(normal, (rows, len(normal)))
    if entities is None or reference_entities is None:
        return allowed
    return allowed & (entities[:, None] == reference_entities[None])
