"""Vectors of films from what is known of them: their genres and the decade they are from."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from offmap.data import load_table


def links(films: pd.DataFrame) -> NDArray[np.float64]:
    """The graph as a matrix: films × genres and decades, 1 where a film has one."""
    genres = films["genres"].str.get_dummies("|")
    decades = pd.get_dummies(films["title"].str.extract(r"\((\d{3})\d\)$")[0])
    return np.column_stack([genres.to_numpy(np.float64), decades.to_numpy(np.float64)])


def spectral(adjacency: NDArray[np.float64], dim: int) -> NDArray[np.float64]:
    r"""Spectral embedding of one side of a bipartite graph.

    With the degrees $D_1$ and $D_2$ of both sides, $D_1^{-1/2} A D_2^{-1/2} = U S V^\top$; the rows of
    $D_1^{-1/2} U S$ for the largest $s < 1$ are the vectors, scaled to variance 1. The largest of all, $s = 1$, is the
    same for every row.

    Args:
        adjacency: Rows of the side that is embedded × nodes of the other one; each has a link at least.
        dim: Length of a vector.
    """
    rows, columns = adjacency.sum(axis=1, keepdims=True), adjacency.sum(axis=0, keepdims=True)
    left, values, _ = np.linalg.svd(adjacency / np.sqrt(rows * columns), full_matrices=False)
    vectors = (left * values / np.sqrt(rows))[:, 1 : dim + 1]
    return vectors / vectors.std(axis=0)


def film_vectors(films: NDArray[np.int64], dim: int = 16) -> NDArray[np.float64]:
    """The vectors of the films with the given ids."""
    table = load_table("ml1m", "movies")
    places = pd.Index(table["movie_id"]).get_indexer(pd.Index(films))
    return spectral(links(table), dim)[places]
