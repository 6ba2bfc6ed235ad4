"""Groups of unknown rows, at the coarseness at which known rows fall into their classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score

from offmap.loop.spread import Spread, Vectors, distances, means

Codes = NDArray[np.int64]
UNGROUPED = -1
# The linkage looks at all pairs of rows: more than these are sampled, and the others are assigned afterwards.
_MOST_WAITING, _MOST_KNOWN = 2500, 1500
# Ward's linkage joins sparse classes before dense ones. So few known rows per class keep the groups small and pure:
# two groups of one class are named alike, but a group of two classes must be split.
_PER_CLASS = 10
_CANDIDATES = 80
# Numbers of groups that agree with the known classes nearly as well as the best one are all good. The one at which the
# cost of joining two groups rises most is taken if it rises that much, and the largest number otherwise.
_TOLERANCE = 0.05
_CLEAR_RISE = 1.2
# A row nearly as close to another centre as to its own fits neither.
_CLEARLY = 0.95
_PASSES = 10


def propose(X: NDArray[np.float32], spread: Spread, *, min_size: int, rng: np.random.Generator) -> Codes:
    """Puts rows that belong together into groups, and says how many groups there are.

    Unknown rows and a few rows of each known class are clustered together by Ward's linkage. The tree is cut where the
    known rows agree best with their classes (adjusted Rand index), which decides the number of groups. All rows then
    move to the nearest centre. Rows that lie further from it than known rows from theirs, or between two centres, stay
    ungrouped, and so do small groups.

    Args:
        X: Rows to group.
        spread: The known classes.
        min_size: Smallest group.
        rng: Draws the sample that the linkage sees.

    Returns:
        The group of each row as 0, 1, …, or -1.

    Reference: Ward, Hierarchical Grouping to Optimize an Objective Function, JASA 1963.
    """
    rows = spread.transform(X)
    if len(rows) < min_size:
        return np.full(len(rows), UNGROUPED)
    waiting = rows[_sample(len(rows), _MOST_WAITING, rng)]
    known = _few_per_class(spread.codes, rng)
    together = np.concatenate([waiting, spread.rows[known]])
    labels = _cut(linkage(together, method="ward"), spread.codes[known])
    return _kept(rows, _refined(rows, means(together, labels)), spread.reach, min_size)


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


def _few_per_class(codes: Codes, rng: np.random.Generator) -> NDArray[Any]:
    """Places of a few random rows of each class."""
    order = rng.permutation(len(codes))
    few = [order[codes[order] == code][:_PER_CLASS] for code in range(int(codes.max()) + 1)]
    return np.concatenate(few)[:_MOST_KNOWN]


def _sample(count: int, most: int, rng: np.random.Generator) -> NDArray[Any]:
    return np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False))


def _cut(tree: NDArray[np.float64], known: Codes) -> Codes:
    """Clusters of all rows, as many as make the last ones, which are known, agree best with their classes."""
    rows = len(tree) + 1
    tried = np.unique(np.geomspace(2, max(rows // 2, 2), _CANDIDATES).astype(int))
    cuts = [fcluster(tree, count, "maxclust") for count in tried]
    agreement = np.array([adjusted_rand_score(known, cut[rows - len(known) :]) for cut in cuts])
    good = np.flatnonzero(agreement >= agreement.max() - _TOLERANCE)
    count = _clear_count(tree[::-1, 2], int(tried[good[0]]), int(tried[good[-1]]))
    return np.unique(fcluster(tree, count, "maxclust"), return_inverse=True)[1].astype(np.int64)


def _clear_count(heights: NDArray[np.float64], low: int, high: int) -> int:
    """The number of clusters from ``low`` to ``high`` after which joining two costs most more; else ``high``.

    Args:
        heights: Costs of the joins, from the last one, which leaves one cluster, to the first.
        low: Fewest clusters.
        high: Most clusters.
    """
    counts = np.arange(max(low, 2), high + 1)
    rise = heights[counts - 2] / np.maximum(heights[counts - 1], 1e-300)
    return int(counts[rise.argmax()]) if rise.max(initial=0) >= _CLEAR_RISE else high


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


def _kept(rows: Vectors, centres: Vectors, reach: float, min_size: int) -> Codes:
    away = distances(rows, centres)
    first, second = np.partition(away, 1, axis=1)[:, :2].T if away.shape[1] > 1 else (away[:, 0], np.inf)
    nearest = np.where((first <= reach) & (first <= _CLEARLY * second), away.argmin(axis=1), UNGROUPED)
    names, counts = np.unique(nearest[nearest != UNGROUPED], return_counts=True)
    large = names[counts >= min_size]
    return np.where(np.isin(nearest, large), np.searchsorted(large, nearest), UNGROUPED)
