"""Estimators by nearest neighbours: KSG, and the version of less bias."""

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from scipy.special import digamma, gammaln
from sklearn.neighbors import KDTree
from torch import Tensor

from offmap.dependence.door import FloatArray, check_variables

# Up to this width of a variable trees find neighbours sooner than all distances do.
TREES_TO = 6
# Distances that are held at a time.
HELD = 1_000_000
# Rounding must not decide whether the k-th neighbour itself lies within its distance.
MARGIN = 1e-10

Counts = list[NDArray[np.int64]]
Norm = Literal["maximum", "euclidean"]
ORDERS = {"maximum": math.inf, "euclidean": 2.0}


def ksg(x: ArrayLike, y: ArrayLike, *, k: int = 3) -> float:
    r"""The mutual information in nats by Kraskov, Stögbauer and Grassberger's first estimator.

    $$\psi(k) + \psi(n) - \frac1n \sum_i \left[\psi(n_x(i) + 1) + \psi(n_y(i) + 1)\right]$$

    with $n_x(i)$ the rows whose $x$ is nearer to $x_i$ than the $k$-th neighbour of row $i$ is in both, all by the
    largest difference of a column. Good in few dimensions; in many it stays far below the truth. It may come out a
    little negative where nothing is shared.

    Args:
        x: ``(n,)`` or ``(n, d)``.
        y: As many rows.
        k: Neighbours.

    Reference: Kraskov, Stögbauer and Grassberger, Estimating Mutual Information, arXiv:cond-mat/0305641, equation 8.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, noise = rng.normal(size=(2, 2000))
        >>> round(ksg(x, x + noise), 1), round(0.5 * math.log(2), 1)
        (0.3, 0.3)
    """
    return float(ksg_pointwise(check_variables(("x", "y"), (x, y)), k=k).mean())


def ksg_improved(x: ArrayLike, y: ArrayLike, *, k: int = 3, norm: Norm = "maximum") -> float:
    r"""The mutual information in nats by the KSG of less bias.

    $$\psi(k) + \log n + \log \frac{c_{d_x} c_{d_y}}{c_{d_x + d_y}} - \frac1n \sum_i \log\left(n_x(i)\, n_y(i)\right)$$

    with $n_x(i)$ the rows whose $x$ is as near to $x_i$ as the $k$-th neighbour of row $i$ is in both, or nearer, and
    $c_d$ the volume of the unit ball in $d$ dimensions. The paper proves that its bias falls faster with the rows by
    the Euclidean norm, in few columns; in many the volumes, which cancel by the maximum norm, lead it far astray.

    Args:
        x: ``(n,)`` or ``(n, d)``.
        y: As many rows.
        k: Neighbours.
        norm: By which neighbours are near: "maximum" or "euclidean".

    Reference: Gao, Oh and Viswanath, Demystifying Fixed k-Nearest Neighbor Information Estimators, arXiv:1604.03006.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, noise = rng.normal(size=(2, 2000))
        >>> round(ksg_improved(x, x + noise, norm="euclidean"), 1)
        0.3
    """
    return float(ksg_improved_pointwise(check_variables(("x", "y"), (x, y)), k=k, norm=norm).mean())


def ksg_pointwise(variables: Sequence[FloatArray], k: int = 3) -> FloatArray:
    """What each row adds to KSG of two variables, or to that of the total correlation of more."""
    rows = _require_neighbours(variables, k)
    counts = _neighbours(variables, k, "maximum", 1 - MARGIN)
    constant = digamma(k) + (len(variables) - 1) * digamma(rows)
    return constant - np.sum([digamma(count + 1) for count in counts], axis=0)


def ksg_improved_pointwise(variables: Sequence[FloatArray], k: int = 3, norm: Norm = "maximum") -> FloatArray:
    """What each row adds to the improved KSG of two variables, or to that of the total correlation of more."""
    rows = _require_neighbours(variables, k)
    if norm not in ORDERS:
        raise ValueError(f"norm must be 'maximum' or 'euclidean'; got {norm!r}")
    widths = [variable.shape[1] for variable in variables]
    volumes = sum(map(_log_ball, widths)) - _log_ball(sum(widths)) if norm == "euclidean" else 0.0
    counts = _neighbours(variables, k, norm, 1 + MARGIN)
    constant = digamma(k) + (len(variables) - 1) * math.log(rows) + volumes
    return constant - np.sum(np.log(counts), axis=0)


def _require_neighbours(variables: Sequence[FloatArray], k: int) -> int:
    rows = len(variables[0])
    if not isinstance(k, int) or not 1 <= k < rows:
        raise ValueError(f"k must be an integer from 1 to the number of rows less one, {rows - 1}; got {k!r}")
    return rows


def _log_ball(width: int) -> float:
    """Logarithm of the volume of the unit ball."""
    return 0.5 * width * math.log(math.pi) - float(gammaln(0.5 * width + 1))


def _neighbours(variables: Sequence[FloatArray], k: int, norm: Norm, reach: float) -> Counts:
    """For each variable and row, the other rows within ``reach`` times the distance of the k-th neighbour in all."""
    if max(variable.shape[1] for variable in variables) <= TREES_TO:
        return _by_trees(variables, k, ORDERS[norm], reach)
    parts = zip(*_by_distances(variables, k, ORDERS[norm], reach), strict=True)
    return [torch.cat(part).numpy() for part in parts]


def _by_trees(variables: Sequence[FloatArray], k: int, order: float, reach: float) -> Counts:
    together = np.hstack(variables)
    distances: FloatArray = np.asarray(cKDTree(together).query(together, k + 1, p=order, workers=-1)[0])
    within = reach * distances[:, -1]
    return [_line_counts(v[:, 0], within) if v.shape[1] == 1 else _tree_counts(v, within, order) for v in variables]


def _tree_counts(variable: FloatArray, within: FloatArray, order: float) -> NDArray[np.int64]:
    # SciPy's tree finds the nearest sooner, scikit-learn's counts sooner.
    tree = KDTree(variable, metric="minkowski" if order == 2 else "chebyshev")
    return tree.query_radius(variable, within, count_only=True) - 1


def _line_counts(column: FloatArray, within: FloatArray) -> NDArray[np.int64]:
    """On a line the neighbours are a stretch of the sorted values."""
    ordered = np.sort(column)
    last = np.searchsorted(ordered, column + within, side="right")
    return last - np.searchsorted(ordered, column - within, side="left") - 1


def _by_distances(variables: Sequence[FloatArray], k: int, order: float, reach: float) -> Iterator[list[Tensor]]:
    """The counts, some rows at a time, from the distances to all rows."""
    tensors = [torch.from_numpy(np.ascontiguousarray(variable)) for variable in variables]
    rows = len(tensors[0])
    for start in range(0, rows, max(1, HELD // rows)):
        chunk = slice(start, start + max(1, HELD // rows))
        apart = torch.stack([_distances(tensor[chunk], tensor, order) for tensor in tensors])
        together = apart.amax(0) if order == math.inf else apart.square().sum(0).sqrt()
        within = reach * _kth(together, k)
        yield [(distance <= within).sum(1) - 1 for distance in apart]


def _distances(some: Tensor, rows: Tensor, order: float) -> Tensor:
    return torch.cdist(some, rows, p=order, compute_mode="donot_use_mm_for_euclid_dist")


def _kth(distances: Tensor, k: int) -> Tensor:
    """The distance of the k-th neighbour, the row itself not counted."""
    return distances.topk(k + 1, dim=1, largest=False).values[:, -1:]
