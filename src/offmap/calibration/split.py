"""Splitting rows into those that train and those that calibrate, so that the latter are like future rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]


class Split(NamedTuple):
    """Indices of the rows that train and of those that calibrate, both ascending; a few rows may do neither."""

    train: Indices
    held_out: Indices


def hold_out(
    groups: NDArray[np.int64], fraction: float, rng: np.random.Generator, *, from_every_group: bool = False
) -> Split:
    r"""Splits rows into training and held-out ones, so that held-out rows are exchangeable with future ones.

    Every row has the same chance to be held out, whatever its group (class, entity), and each group gives its share of
    the held-out rows. Only a group of one row trains as a whole, since it would be unknown otherwise: ``uncovered``
    lists those groups, and no promise covers their rows. With a ``fraction`` above a half, a small group that would
    lose all its rows keeps one.

    Args:
        groups: The group of each row.
        fraction: Share of the rows to hold out; at least one row is.
        rng: Chooses them.
        from_every_group: Take at least one row of each group out of training. Where the score depends on how many rows
            a group was trained on, groups that calibrate must not have been trained on fewer rows than the others. In a
            group of fewer than ``1 / fraction`` rows the row that is taken calibrates with a chance of ``fraction``
            times the rows of the group, so that small groups do not count too much; else it is not used.

    Example:
        >>> hold_out(np.repeat([0, 1], [2, 8]), 0.2, np.random.default_rng(0))
        Split(train=array([0, 1, 2, 3, 4, 5, 7, 8]), held_out=array([6, 9]))
    """
    shuffled = rng.permutation(len(groups))
    by_group = shuffled[np.argsort(groups[shuffled], kind="stable")]
    if groups.min() == groups.max():
        # One group in random order needs no random start, and keeps a row for training.
        count = min(max(1, round(fraction * len(groups))), len(groups) - 1)
        held_out = np.sort(by_group[1:][np.arange(count) * (len(groups) - 1) // max(count, 1)])
        return Split(np.setdiff1d(np.arange(len(groups)), held_out), held_out)
    by_group = by_group[~np.isin(groups[by_group], uncovered(groups))]
    chosen = by_group[_evenly(len(by_group), fraction, rng)]
    whole = np.bincount(groups[chosen], minlength=groups.max() + 1) == np.bincount(groups)
    held_out = np.setdiff1d(chosen, _first_of_groups(chosen[whole[groups[chosen]]], groups))
    spared = by_group[~np.isin(groups[by_group], groups[held_out])]
    out = np.union1d(held_out, _first_of_groups(spared, groups)) if from_every_group else held_out
    return Split(np.setdiff1d(np.arange(len(groups)), out), held_out)


def uncovered(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Groups of one row, which only train.

    Example:
        >>> uncovered(np.array([0, 0, 1, 2, 2]))
        array([1])
    """
    names, counts = np.unique(groups, return_counts=True)
    return names[counts < 2]


def _evenly(length: int, fraction: float, rng: np.random.Generator) -> Indices:
    """A share of ``length`` places at even distances from a random start: each place has the same chance."""
    count = min(length, max(1, round(fraction * length)))
    places = (rng.uniform() + np.arange(count)) * (length / max(count, 1))
    return np.minimum(places.astype(np.intp), length - 1)


def _first_of_groups(rows: Indices, groups: NDArray[np.int64]) -> Indices:
    """The first of ``rows`` in each of their groups."""
    _, first = np.unique(groups[rows], return_index=True)
    return rows[first]
