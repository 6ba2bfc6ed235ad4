"""Splitting rows into those that train and those that calibrate, so that the latter are like future rows."""

from typing import Any, NamedTuple

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

    Rows are drawn irrespective of their group (class, entity). To take the same share of each group would not do: a
    group that has few training rows by chance, whose rows therefore look novel, would calibrate with as few, while the
    future brings it in proportion to its true share. Only a group of one row trains as a whole, since it would be
    unknown otherwise: ``uncovered`` lists those groups, and no promise covers their rows. A small group that would lose
    all its rows keeps one.

    Args:
        groups: The group of each row.
        fraction: Share of the rows to hold out; at least one row is.
        rng: Chooses them.
        from_every_group: Take at least one row of each group out of training. Where the score depends on how many rows
            a group was trained on, groups that calibrate must not have been trained on fewer rows than the others. A
            group calibrates in proportion to its share of *future* rows, which is estimated by ``expected_sizes``; the
            row that is taken of a small group may calibrate with a chance only, or else is not used.

    Example:
        >>> hold_out(np.repeat([0, 1], [2, 8]), 0.2, np.random.default_rng(0))
        Split(train=array([0, 1, 2, 3, 5, 7, 8, 9]), held_out=array([4, 6]))
    """
    shuffled = rng.permutation(len(groups))
    if groups.min() == groups.max():
        return _of_one_group(shuffled, fraction)
    free = shuffled[~np.isin(groups[shuffled], uncovered(groups))]
    if from_every_group and len(free):
        return _from_every_group(free[np.argsort(groups[free], kind="stable")], groups, fraction, rng)
    return _keeping_one(free[: _count(len(free), fraction)], groups)


def _of_one_group(shuffled: Indices, fraction: float) -> Split:
    """Rows in random order need no other draw; one of them stays for training."""
    rows = len(shuffled)
    count = min(max(1, round(fraction * rows)), rows - 1)
    held_out = np.sort(shuffled[1:][np.arange(count) * (rows - 1) // max(count, 1)])
    return Split(np.setdiff1d(np.arange(rows), held_out), held_out)


def _keeping_one(chosen: Indices, groups: NDArray[np.int64]) -> Split:
    """Holds out the chosen rows, but for one row of each group that would lose all of its rows."""
    whole = np.bincount(groups[chosen], minlength=groups.max() + 1) == np.bincount(groups)
    held_out = np.setdiff1d(chosen, _first_of_groups(chosen[whole[groups[chosen]]], groups))
    return Split(np.setdiff1d(np.arange(len(groups)), held_out), held_out)


def _from_every_group(by_group: Indices, groups: NDArray[np.int64], fraction: float, rng: np.random.Generator) -> Split:
    """Holds out of each group in proportion to the rows to expect of it; ``by_group`` has rows of a group together."""
    _, place, sizes = np.unique(groups[by_group], return_inverse=True, return_counts=True)
    wanted = expected_sizes(sizes) * max(fraction, 1 / len(by_group))
    steps = np.concatenate([[0.0], np.cumsum(wanted)]) + rng.uniform()
    # The whole numbers between two steps are the rows of a group, from a random start.
    count = np.clip(np.diff(np.floor(steps + 1e-9)), 0, sizes - 1).astype(np.intp)
    rank = np.arange(len(by_group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    held_out, out = np.sort(by_group[rank < count[place]]), by_group[rank < np.maximum(count, 1)[place]]
    return Split(np.setdiff1d(np.arange(len(groups)), out), held_out)


def expected_sizes(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    r"""How many rows each group would have in another sample as large, from the numbers in this one.

    A group that has many rows by chance will have fewer next time. Of sizes $n_g$ with mean $\mu$ and variance $v$,
    counting explains $\mu$ of the variance (Poisson), so that the best linear guess is
    $\mu + (1 - \mu / v)_+ (n_g - \mu)$.

    Reference: Robbins, An Empirical Bayes Approach to Statistics, 1956.

    Example:
        >>> expected_sizes(np.array([3, 5, 4, 4])), expected_sizes(np.array([2, 2, 100, 200])).round()
        (array([4., 4., 4., 4.]), array([  3.,   3., 100., 199.]))
    """
    mean, variance = sizes.mean(), sizes.var()
    kept = max(0.0, 1 - mean / variance) if variance > 0 else 0.0
    return np.asarray(mean + kept * (sizes - mean), dtype=np.float64)


def uncovered(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Groups of one row, which only train.

    Example:
        >>> uncovered(np.array([0, 0, 1, 2, 2]))
        array([1])
    """
    names, counts = np.unique(groups, return_counts=True)
    return names[counts < 2]


def uncovered_names(groups: NDArray[np.int64], names: NDArray[Any]) -> list[str]:
    """What the groups of one row are called; ``names`` has the name of each group."""
    return [str(name) for name in names[uncovered(groups)]]


def _count(length: int, fraction: float) -> int:
    """How many of ``length`` rows are held out: at least one, if there is one."""
    return min(length, max(1, round(fraction * length)))


def _first_of_groups(rows: Indices, groups: NDArray[np.int64]) -> Indices:
    """The first of ``rows`` in each of their groups."""
    _, first = np.unique(groups[rows], return_index=True)
    return rows[first]
