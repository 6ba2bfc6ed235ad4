"""Ways to put rows into groups, some of which know a few labelled rows, to compare with each other."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.decomposition import PCA

from offmap.loop.grouping import partition
from offmap.loop.spread import Spread

Array = NDArray[Any]
# Linkage looks at all pairs of rows.
MOST_LINKED = 4000


class Clustering(Protocol):
    """Makes groups of unlabelled rows."""

    def centres(self, X: Array, labelled: tuple[Array, Array], groups: int, seed: int) -> Array:
        """The mean row of each group.

        Args:
            X: Rows without a label.
            labelled: Rows with a label, and their classes.
            groups: The true number of classes, for those that are given it.
            seed: Seed.
        """
        ...


@dataclass(frozen=True)
class Plain:
    """k-means with the true number, the best of five starts."""

    starts: int = 5

    def centres(self, X: Array, labelled: tuple[Array, Array], groups: int, seed: int) -> Array:
        """The mean row of each group."""
        return KMeans(groups, n_init=self.starts, random_state=seed).fit(X).cluster_centers_


@dataclass(frozen=True)
class Linked:
    """Average linkage with the true number."""

    def centres(self, X: Array, labelled: tuple[Array, Array], groups: int, seed: int) -> Array:
        """The mean row of each group."""
        rows = _some(X, seed)
        return _means(rows, AgglomerativeClustering(groups, linkage="average").fit_predict(rows))


@dataclass(frozen=True)
class Dense:
    """HDBSCAN on principal components, which finds the number by itself and leaves rows out."""

    components: int = 20
    least: int = 8

    def centres(self, X: Array, labelled: tuple[Array, Array], groups: int, seed: int) -> Array:
        """The mean row of each group."""
        rows = _some(X, seed)
        found = HDBSCAN(min_cluster_size=self.least, cluster_selection_method="leaf", copy=True).fit_predict(
            PCA(self.components, random_state=seed).fit_transform(rows)
        )
        return _means(rows[found >= 0], found[found >= 0])


@dataclass(frozen=True)
class Library:
    """The groups of the open-world loop, with the true number or one that it estimates."""

    given: bool

    def centres(self, X: Array, labelled: tuple[Array, Array], groups: int, seed: int) -> Array:
        """The mean row of each group."""
        spread = Spread.of(labelled[0], np.unique(labelled[1], return_inverse=True)[1].astype(np.int64))
        codes = partition(X, spread, rng=np.random.default_rng(seed), groups=groups if self.given else None)
        return _means(X, codes)


def _some(X: Array, seed: int) -> Array:
    return X[np.random.default_rng(seed).permutation(len(X))[:MOST_LINKED]]


def _means(X: Array, codes: Array) -> Array:
    return np.stack([X[codes == code].mean(axis=0) for code in np.unique(codes)])
