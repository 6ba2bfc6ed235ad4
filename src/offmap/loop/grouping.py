"""Groups of unknown rows, at the coarseness at which known rows fall into their classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from offmap.loop.counting import Codes, Cuts
from offmap.loop.diffusion import Neighbors
from offmap.loop.spread import Spread, Vectors, distances, means

UNGROUPED = -1
# The linkage looks at all pairs of rows: more than these are sampled, and the others are assigned afterwards.
_MOST_WAITING, _MOST_KNOWN = 2500, 1000
# Known rows of each class that are clustered with the others: about as many as an unknown class has.
_LEAST_PER_CLASS, _WAITING_PER_KNOWN = 10, 40
# Numbers of neighbours that are tried; small classes need few. Of two that are equally good, the first is taken.
_NEIGHBORS = (15, 10, 5)
_ROWS_PER_NEIGHBOR = 20
# A row nearly as close to another centre as to its own fits neither.
_CLEARLY = 0.95
_PASSES = 10


def propose(X: NDArray[np.float32], spread: Spread, *, min_size: int, rng: np.random.Generator) -> Codes:
    """Puts rows that belong together into groups, and says how many groups there are.

    The groups are those of ``partition``. Rows that lie further from the centre of their group than known rows from
    theirs, or nearer to another centre, stay ungrouped, and so do small groups.

    Args:
        X: Rows to group.
        spread: The known classes.
        min_size: Smallest group.
        rng: Draws the sample that the linkage sees.

    Returns:
        The group of each row as 0, 1, …, or -1.
    """
    if len(X) < min_size:
        return np.full(len(X), UNGROUPED)
    return _kept(spread.transform(X), partition(X, spread, rng=rng), spread.reach, min_size)


def partition(X: NDArray[np.float32], spread: Spread, *, rng: np.random.Generator, groups: int | None = None) -> Codes:
    """Puts every row into a group.

    Unknown rows and some rows of each known class are linked with their nearest neighbours, and a random walk along the
    links gives each row new coordinates. Trees (Ward's linkage) over these, for several numbers of neighbours, and over
    the rows as they are compete: the one that agrees best with the known classes is taken and tells the number of
    groups. If links are better, known rows of one class are linked with each other, and all are clustered.

    Args:
        X: Rows to group.
        spread: The known classes.
        rng: Draws the sample that the linkage sees; other rows go to the nearest centre.
        groups: The number of groups, those of known classes included; by default it is estimated.

    Returns:
        The group of each row as 0, 1, …

    Reference: Ward, Hierarchical Grouping to Optimize an Objective Function, JASA 1963.
    """
    rows = spread.transform(X)
    chosen = _sample(len(rows), _MOST_WAITING, rng)
    known = _few_per_class(spread.codes, max(_LEAST_PER_CLASS, len(chosen) // _WAITING_PER_KNOWN), rng)
    together = np.concatenate([rows[chosen], spread.rows[known]])
    found = np.unique(_clustered(together, spread.codes[known], groups), return_inverse=True)[1].astype(np.int64)
    # A group of known rows alone may be the one of rows that were not sampled.
    codes = distances(rows, means(together, found)).argmin(axis=1)
    codes[chosen] = found[: len(chosen)]
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def _clustered(rows: Vectors, known: Codes, groups: int | None) -> Codes:
    """Groups of rows, of which the last ones are known."""
    # Among few rows, many neighbours would join everything.
    most = max(min(_NEIGHBORS), len(rows) // _ROWS_PER_NEIGHBOR)
    tried = Neighbors.of(rows, [count for count in _NEIGHBORS if count <= most])
    # The rows as they are come first: classes that are plain clusters need no links, which would break them up.
    trees = [linkage(each, method="ward") for each in (rows, *(neighbors.diffuse().walk() for neighbors in tried))]
    cuts = [Cuts(tree, known) for tree in trees]
    best = int(np.argmax([each.agreement.max() for each in cuts]))
    count = cuts[best].count(rows, known) if groups is None else groups
    coordinates = rows if best == 0 else tried[best - 1].diffuse_with(known).leading(count)
    first = fcluster(trees[0] if best == 0 else linkage(coordinates, method="ward"), count, "maxclust")
    centres = means(coordinates, np.unique(first, return_inverse=True)[1].astype(np.int64))
    return distances(coordinates, _refined(coordinates, centres)).argmin(axis=1)


def halves(X: NDArray[np.float32], spread: Spread) -> Codes:
    """Splits one group in two, where Ward's linkage joined it last."""
    return fcluster(linkage(spread.transform(X), method="ward"), 2, "maxclust").astype(np.int64) - 1


def join(X: NDArray[np.float32], groups: dict[int, NDArray[np.float32]], spread: Spread) -> dict[int, list[int]]:
    """Rows that lie in an existing group: nearer to its centre than to any other, and within reach of it.

    Args:
        X: Rows that are in no group.
        groups: Rows of each group.
        spread: The known classes, whose centres compete for the rows.

    Returns:
        For each group that is joined, the places in ``X`` of its new rows.
    """
    if not groups or not len(X):
        return {}
    centres = np.stack([spread.transform(rows).mean(axis=0) for rows in groups.values()])
    away = distances(spread.transform(X), np.concatenate([centres, spread.centres]))
    nearest = away.argmin(axis=1)
    near = (nearest < len(groups)) & (away.min(axis=1) <= spread.reach)
    found: dict[int, list[int]] = {}
    for place in np.flatnonzero(near):
        found.setdefault(list(groups)[nearest[place]], []).append(int(place))
    return found


def _few_per_class(codes: Codes, count: int, rng: np.random.Generator) -> NDArray[Any]:
    """Places of a few random rows of each class."""
    order = rng.permutation(len(codes))
    few = [order[codes[order] == code][:count] for code in range(int(codes.max()) + 1)]
    chosen = np.concatenate(few)
    return chosen if len(chosen) <= _MOST_KNOWN else rng.choice(chosen, _MOST_KNOWN, replace=False)


def _sample(count: int, most: int, rng: np.random.Generator) -> NDArray[Any]:
    return np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False))


def _refined(rows: Vectors, centres: Vectors) -> Vectors:
    """Centres after a few passes of k-means over all rows; a centre without rows stays where it is."""
    for _ in range(_PASSES):
        nearest = distances(rows, centres).argmin(axis=1)
        moved = centres.copy()
        present = np.unique(nearest)
        moved[present] = means(rows, np.searchsorted(present, nearest))
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres


def _kept(rows: Vectors, codes: Codes, reach: float, min_size: int) -> Codes:
    away = distances(rows, means(rows, codes))
    own = np.take_along_axis(away, codes[:, None], axis=1)[:, 0]
    np.put_along_axis(away, codes[:, None], np.inf, axis=1)
    fits = (own <= reach) & (own <= _CLEARLY * away.min(axis=1))
    names, counts = np.unique(codes[fits], return_counts=True)
    large = names[counts >= min_size]
    return np.where(fits & np.isin(codes, large), np.searchsorted(large, codes), UNGROUPED)
