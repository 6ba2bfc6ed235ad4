"""Coordinates in which rows that are linked by many short paths lie together, whatever the shape of their class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, eigsh
from sklearn.neighbors import NearestNeighbors

from offmap.loop.spread import Vectors

# Eigenvectors that are computed: as many groups can be told apart.
_MOST = 200
# Steps of the random walk. More of them blur small groups, fewer leave noise in.
_STEPS = 5
# Weight of the links of a known row with its class, as a multiple of the weight of those with its neighbours.
_OWN_CLASS = 3.0
# So few rows are solved as a whole, which is as fast.
_SMALL = 500


@dataclass(frozen=True, eq=False)
class Diffusion:
    r"""The leading eigenvectors of a random walk between neighbours.

    Args:
        values: Eigenvalues, the largest first.
        vectors: Eigenvectors, one column each.
    """

    values: Vectors
    vectors: Vectors

    def walk(self) -> Vectors:
        """Where a random walk from each row is after a few steps: one unit vector per row."""
        return _unit(self.vectors * np.maximum(self.values, 1e-3) ** _STEPS)

    def leading(self, count: int) -> Vectors:
        """The coordinates that tell ``count`` groups apart best: as many eigenvectors, one unit vector per row.

        Reference: Ng, Jordan and Weiss, On Spectral Clustering: Analysis and an Algorithm, NIPS 2001.
        """
        return _unit(self.vectors[:, :count])


@dataclass(frozen=True, eq=False)
class Neighbors:
    r"""Links between rows that are near to each other.

    A link has the weight $\exp(-d^2 / (\sigma_i \sigma_j))$ with the distance $d$ and the distances $\sigma$ from each
    of both rows to its furthest neighbour, so that no scale must be chosen.

    Args:
        links: The weights, symmetric.

    Reference: Zelnik-Manor and Perona, Self-Tuning Spectral Clustering, NIPS 2004.

    Example:
        >>> line = np.arange(20.0)[:, None]
        >>> apart = Neighbors.of(np.concatenate([line, line + 100]), [4])[0].diffuse().leading(2)
        >>> bool(abs(apart[0] @ apart[19]) > 0.99), bool(abs(apart[0] @ apart[39]) < 0.01)
        (True, True)
    """

    links: sparse.csr_matrix

    @classmethod
    def of(cls, rows: Vectors, counts: Sequence[int]) -> list[Self]:
        """Links every row with its nearest rows, once for each number of them.

        Args:
            rows: Rows, four or more.
            counts: Numbers of neighbours.
        """
        most = min(max(counts), len(rows) - 1)
        lengths, nearest = NearestNeighbors(n_neighbors=most).fit(rows).kneighbors()
        return [cls(_links(nearest[:, :count], lengths[:, :count])) for count in counts]

    def normalised(self) -> sparse.csr_matrix:
        """The links, divided by the roots of the sums of both rows."""
        return _normalised(self.links)

    def diffuse(self) -> Diffusion:
        """The leading eigenvectors of a random walk along the links."""
        return _diffusion(self.links)

    def diffuse_with(self, known: NDArray[np.int64]) -> Diffusion:
        """The same with links that respect known classes: rows of one class are linked, and rows of two are not.

        Args:
            known: Classes of the last rows, as 0, 1, …
        """
        count = self.links.shape[0]
        codes = np.concatenate([np.full(count - len(known), -1), known])
        links = self.links.tocoo()
        apart = (codes[links.row] >= 0) & (codes[links.col] >= 0) & (codes[links.row] != codes[links.col])
        kept = sparse.csr_matrix((np.where(apart, 0.0, links.data), (links.row, links.col)), shape=self.links.shape)
        member = sparse.csr_matrix(
            (np.ones(len(known)), (np.arange(count - len(known), count), known)), shape=(count, int(known.max()) + 1)
        )
        others = np.maximum(np.bincount(known) - 1, 1)
        weight = _OWN_CLASS * float(np.median(np.asarray(self.links.sum(axis=1))))
        own = member @ sparse.diags(weight / others) @ member.T
        own.setdiag(0.0)
        return _diffusion((kept + own).tocsr())


def _normalised(links: sparse.csr_matrix) -> sparse.csr_matrix:
    roots = sparse.diags(1 / np.sqrt(np.maximum(np.asarray(links.sum(axis=1)).ravel(), 1e-12)))
    return (roots @ links @ roots).tocsr()


def _diffusion(links: sparse.csr_matrix) -> Diffusion:
    count = max(1, min(_MOST, links.shape[0] // 4))
    values, vectors = _leading(_normalised(links), count)
    order = np.argsort(-values)
    return Diffusion(values[order], vectors[:, order])


def _leading(matrix: sparse.csr_matrix, count: int) -> tuple[Vectors, Vectors]:
    """The largest eigenvalues and their eigenvectors; small or awkward matrices are solved as a whole."""
    size = matrix.shape[0]
    if size > _SMALL:
        try:
            # A start that is no eigenvector itself, as equal numbers may be.
            start = np.random.default_rng(0).uniform(0.5, 1.5, size)
            return eigsh(matrix, k=count, which="LA", tol=1e-3, v0=start)
        except ArpackError:
            pass
    return eigh(matrix.toarray(), subset_by_index=[size - count, size - 1])


def _links(nearest: NDArray[np.int64], lengths: Vectors) -> sparse.csr_matrix:
    """The weight of the links, for the nearest rows of each row and their distances, in ascending order."""
    rows, count = nearest.shape
    reach = np.maximum(lengths[:, -1], 1e-12)
    weights = np.exp(-(lengths**2) / (reach[:, None] * reach[nearest]))
    places = np.repeat(np.arange(rows), count)
    one_way = sparse.csr_matrix((weights.ravel(), (places, nearest.ravel())), shape=(rows, rows))
    return sparse.csr_matrix((one_way + one_way.T) / 2)


def _unit(vectors: Vectors) -> Vectors:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))
