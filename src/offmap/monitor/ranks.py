"""Semi-online p-values: the rank of each row among the calibration rows and the rows that came before it."""

import numpy as np
from numpy.typing import NDArray

from offmap.arrays import FloatArray


def semi_online_p_values(past: FloatArray, stream: FloatArray, ties: FloatArray) -> FloatArray:
    r"""The share of earlier rows that are more novel than each row, with equal ones counted in part.

    $$p_t = \frac{\#\{i < t : s_i > s_t\} + \theta_t (1 + \#\{i < t : s_i = s_t\})}{t}$$

    over all rows before, calibration rows first. While all rows are exchangeable these are independent and uniform,
    however few calibration rows there are; p-values against a fixed calibration set are not independent.

    Args:
        past: Novelty of the rows before the stream, ``(runs, n)``, in ascending order in each run.
        stream: Novelty of the rows of the stream, ``(runs, m)``, in their order.
        ties: Uniform draws $\theta$, ``(runs, m)``.

    Reference: Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005, section 2.

    Example:
        >>> half = np.full((1, 3), 0.5)
        >>> semi_online_p_values(np.array([[1.0, 2.0, 3.0]]), np.array([[0.0, 9.0, 9.0]]), half).round(2)
        array([[0.88, 0.1 , 0.17]])
    """
    older = past.shape[1]
    pairs = list(zip(past, stream, strict=True))
    below = np.stack([np.searchsorted(rows, new, side="left") for rows, new in pairs])
    at_most = np.stack([np.searchsorted(rows, new, side="right") for rows, new in pairs])
    earlier_above, earlier_equal = _earlier(stream)
    greater = older - at_most + earlier_above
    equal = at_most - below + earlier_equal
    return np.asarray((greater + ties * (1 + equal)) / (older + 1 + np.arange(stream.shape[1])), dtype=np.float64)


def _earlier(stream: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How many earlier rows of the stream are above each row, and how many equal it; for all runs at once.

    A binary indexed tree per run holds the ranks that were met so far, so that a row costs a logarithm.
    """
    runs, rows = stream.shape
    ranks = np.stack([np.searchsorted(np.sort(run), run) for run in stream]) + 1
    tree, equal_so_far = np.zeros((runs, rows + 1)), np.zeros((runs, rows + 2))
    every, above, equal = np.arange(runs), np.empty((runs, rows)), np.empty((runs, rows))
    for t in range(rows):
        rank = ranks[:, t]
        equal[:, t] = equal_so_far[every, rank]
        above[:, t] = t - _count(tree, rank)
        equal_so_far[every, rank] += 1
        _add(tree, rank)
    return above, equal


def _count(tree: FloatArray, rank: NDArray[np.intp]) -> FloatArray:
    """How many ranks up to ``rank`` each tree holds."""
    total, place, runs = np.zeros(len(tree)), rank.copy(), np.arange(len(tree))
    while place.any():
        # Place 0 of each tree stays empty, so that runs that are through add nothing.
        total += tree[runs, place]
        place &= place - 1
    return total


def _add(tree: FloatArray, rank: NDArray[np.intp]) -> None:
    """Adds one rank to each tree."""
    place, runs, size = rank.copy(), np.arange(len(tree)), tree.shape[1]
    while len(place):
        tree[runs, place] += 1
        place += place & -place
        inside = place < size
        place, runs = place[inside], runs[inside]
