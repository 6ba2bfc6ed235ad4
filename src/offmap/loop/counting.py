"""How many groups there are, from what the known classes tell: where they fall apart, and how wide they are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster
from sklearn.metrics import adjusted_rand_score

from offmap.loop.spread import Vectors, means

Codes = NDArray[np.int64]
_CANDIDATES = 80
# Numbers of groups that agree with the known classes nearly as well as the best one are all good.
_TOLERANCE = 0.03
# If joining two of a number of groups costs so much more than the join before, that number is taken.
_CLEAR_RISE = 1.5


class Cuts:
    """One tree over unknown and known rows, cut into different numbers of groups.

    Args:
        tree: The tree, as ``scipy.cluster.hierarchy.linkage`` gives it.
        known: Classes of its last rows, which are known, as 0, 1, …
    """

    def __init__(self, tree: NDArray[np.float64], known: Codes) -> None:
        rows = len(tree) + 1
        self.counts = np.unique(np.geomspace(2, max(rows // 4, 2), _CANDIDATES).astype(int))
        self.codes = [fcluster(tree, count, "maxclust").astype(np.int64) - 1 for count in self.counts]
        first = rows - len(known)
        # Costs of the joins, from the last one, which leaves one group, to the first.
        self.heights = tree[::-1, 2]
        self.agreement = np.array([adjusted_rand_score(known, codes[first:]) for codes in self.codes])

    def count(self, rows: Vectors, known: Codes) -> int:
        r"""A number of groups that stands out, or else the geometric mean of two numbers that err in opposite ways.

        One of them is the largest number that agrees with the known classes nearly as well as the best (adjusted Rand
        index). Known classes show only where they are joined with each other and not with unknown ones, so the best
        number itself is too small. The other is the number at which groups are as wide as known classes: their sum of
        squares $\sum_g \sum_{i \in g} \|x_i - \mu_g\|^2 / (n - K)$ has fallen to that of the known classes.

        Args:
            rows: All rows of the tree.
            known: Classes of the last ones.
        """
        good = np.flatnonzero(self.agreement >= self.agreement.max() - _TOLERANCE)
        agreeing = int(self.counts[good[-1]])
        clear = self._clear_count(int(self.counts[good[0]]), agreeing)
        if clear is not None:
            return clear
        widths = np.array([_width(rows, codes) for codes in self.codes])
        narrow = np.flatnonzero(widths <= _width(rows[len(rows) - len(known) :], known))
        as_wide = self.counts[narrow[0]] if len(narrow) else self.counts[-1]
        return max(2, round(float(np.sqrt(agreeing * as_wide))))

    def _clear_count(self, low: int, high: int) -> int | None:
        """The number of groups from ``low`` to ``high`` below which joins are clearly more costly, if there is one."""
        counts = np.arange(max(low, 2), min(high, len(self.heights) - 1) + 1)
        rise = self.heights[counts - 2] / np.maximum(self.heights[counts - 1], 1e-300)
        return int(counts[rise.argmax()]) if rise.max(initial=0) >= _CLEAR_RISE else None


def _width(rows: Vectors, codes: NDArray[Any]) -> float:
    """The variance within groups, all features together."""
    names, places = np.unique(codes, return_inverse=True)
    within = rows - means(rows, places)[places]
    return float((within**2).sum()) / max(len(rows) - len(names), 1)
