"""Splitting rows into those that train and those that calibrate."""

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]


def hold_out(groups: NDArray[np.int64], fraction: float, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Splits rows into training and held-out ones, stratified by group (class, entity).

    At least one row is held out, and one row of each group always stays in training, so that no class is lost.

    Args:
        groups: The group of each row.
        fraction: Share of the rows to hold out.
        rng: Chooses them.

    Returns:
        The indices of the training rows and of the held-out rows, both ascending.
    """
    shuffled = rng.permutation(len(groups))
    by_group = shuffled[np.argsort(groups[shuffled], kind="stable")]
    first_of_group = np.diff(groups[by_group], prepend=groups.min() - 1) != 0
    free = by_group[~first_of_group]
    count = min(max(1, round(fraction * len(groups))), len(free))
    held_out = np.sort(free[(np.arange(count) * len(free)) // max(count, 1)])
    return np.setdiff1d(np.arange(len(groups)), held_out), held_out
