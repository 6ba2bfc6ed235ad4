"""The classes of rows that nobody read, from those of rows near them that somebody did."""

import numpy as np
from numpy.typing import NDArray

from offmap.loop.diffusion import Neighbors
from offmap.loop.spread import Vectors

# Neighbours of each row, and the share of a row's class that comes from them in each step.
_NEIGHBORS, _FROM_NEIGHBORS, _STEPS = 10, 0.9, 30


def propagate(rows: Vectors, codes: NDArray[np.int64], weights: Vectors) -> NDArray[np.int64]:
    r"""The class of each row, after classes have spread along links between neighbours.

    With the normalised links $S$ and one column of $Y$ per class, $F \leftarrow a S F + (1 - a) Y$. All classes weigh
    alike in $Y$, however many rows each has.

    Args:
        rows: Rows.
        codes: The class that each row is said to have, as 0, 1, …
        weights: How much this counts for each row: 1 for a row that was read, less for others of its group, and 0 for
            rows without a class.

    Reference: Zhou et al., Learning with Local and Global Consistency, NIPS 2003.

    Example:
        >>> line = np.concatenate([np.arange(15.0), np.arange(100.0, 115)])[:, None]
        >>> said = np.repeat([0, 1], [20, 10])
        >>> read = np.isin(np.arange(30), [7, 22]).astype(float)
        >>> propagate(line, said, np.maximum(read, 0.1)).tolist() == [0] * 15 + [1] * 15
        True
    """
    said = np.zeros((len(rows), int(codes.max()) + 1))
    said[np.arange(len(rows)), codes] = weights
    said /= np.maximum(said.sum(axis=0), 1e-12)
    links, found = Neighbors.of(rows, [_NEIGHBORS])[0].normalised(), said
    for _ in range(_STEPS):
        found = _FROM_NEIGHBORS * (links @ found) + (1 - _FROM_NEIGHBORS) * said
    return np.asarray(found.argmax(axis=1), np.int64)
