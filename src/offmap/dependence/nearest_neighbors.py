"""Nearest-neighbour estimators: KSG, its bias-improved version, and its version for columns with ties."""

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from scipy.special import digamma, gammaln
from sklearn.neighbors import KDTree
from torch import Tensor

from offmap.dependence.ties import warn_of_ties
from offmap.dependence.validation import FloatArray, check_variables

# Up to this width of a variable, trees are faster than all pairwise distances.
WIDEST_TREE = 6
# Distances that are held in memory at a time.
CHUNK_DISTANCES = 1_000_000
# Keeps rounding from deciding whether the k-th neighbour itself lies within its distance.
MARGIN = 1e-10

Counts = list[NDArray[np.int64]]
# Exponent of each norm.
NORMS = {"maximum": math.inf, "euclidean": 2.0}


def ksg(x: ArrayLike, y: ArrayLike, *, n_neighbors: int = 3) -> float:
    r"""Estimates the mutual information in nats by the first estimator of Kraskov, Stögbauer and Grassberger.

    $$\psi(k) + \psi(n) - \frac1n \sum_i \left[\psi(n_x(i) + 1) + \psi(n_y(i) + 1)\right]$$

    with $n_x(i)$ the number of rows whose $x$ is closer to $x_i$ than the $k$-th neighbour of row $i$ in the joint
    space, in the maximum norm. Accurate in few dimensions, far too low in many. Where nothing is shared it may be
    slightly negative.

    Columns are taken as they are: they must be on similar scales and have no ties. ``mutual_information`` standardises
    columns first and breaks ties; for columns with many ties use ``mixed_ksg``.

    Args:
        x: Array of shape ``(n,)`` or ``(n, d)``.
        y: Array with the same number of rows.
        n_neighbors: $k$. More neighbours lower the variance and raise the bias.

    Reference: Kraskov, Stögbauer and Grassberger, Estimating Mutual Information, arXiv:cond-mat/0305641, equation 8.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, noise = rng.normal(size=(2, 2000))
        >>> round(ksg(x, x + noise), 1), round(0.5 * math.log(2), 1)
        (0.3, 0.3)
    """
    variables = check_variables(("x", "y"), (x, y))
    warn_of_ties(dict(zip("xy", variables, strict=True)), "ksg", stacklevel=3)
    return float(ksg_pointwise(variables, n_neighbors=n_neighbors).mean())


def ksg_improved(x: ArrayLike, y: ArrayLike, *, n_neighbors: int = 3, norm: str = "maximum") -> float:
    r"""Estimates the mutual information in nats by the bias-improved KSG estimator.

    $$\psi(k) + \log n + \log \frac{c_{d_x} c_{d_y}}{c_{d_x + d_y}} - \frac1n \sum_i \log\left(n_x(i)\, n_y(i)\right)$$

    with $n_x(i)$ the number of rows whose $x$ is at most as far from $x_i$ as the $k$-th neighbour of row $i$ in the
    joint space, and $c_d$ the volume of the unit ball in $d$ dimensions. In few columns the Euclidean norm gives the
    faster fall of the bias that the paper proves. In many columns its volume terms, which cancel in the maximum norm,
    lead far astray.

    Columns are taken as they are: they must be on similar scales and have no ties. ``mutual_information`` standardises
    columns first and breaks ties; for columns with many ties use ``mixed_ksg``.

    Args:
        x: Array of shape ``(n,)`` or ``(n, d)``.
        y: Array with the same number of rows.
        n_neighbors: $k$. More neighbours lower the variance and raise the bias.
        norm: "maximum" or "euclidean".

    Reference: Gao, Oh and Viswanath, Demystifying Fixed k-Nearest Neighbor Information Estimators, arXiv:1604.03006.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, noise = rng.normal(size=(2, 2000))
        >>> round(ksg_improved(x, x + noise, norm="euclidean"), 1)
        0.3
    """
    variables = check_variables(("x", "y"), (x, y))
    warn_of_ties(dict(zip("xy", variables, strict=True)), "ksg_improved", stacklevel=3)
    return float(ksg_improved_pointwise(variables, n_neighbors=n_neighbors, norm=norm).mean())


def mixed_ksg(x: ArrayLike, y: ArrayLike, *, n_neighbors: int = 5) -> float:
    r"""Estimates the mutual information in nats of columns that may be discrete, continuous, or a mixture of both.

    $$\log n + \frac1n \sum_i \left[\psi(n_{xy}(i)) - \psi(n_x(i)) - \psi(n_y(i))\right]$$

    with $n_{xy}(i)$, $n_x(i)$ and $n_y(i)$ the numbers of rows, row $i$ included, that are closer to row $i$ than its
    $k$-th neighbour in the joint space; if that neighbour has the values of row $i$, the numbers of rows with these
    values. Without ties $n_{xy} = k$ and this is KSG; for discrete columns it is the plug-in estimate with most of its
    bias removed. Values that only few rows share make it too high.

    Columns are taken as they are and must be on similar scales; ``mutual_information`` standardises them first.

    Args:
        x: Array of shape ``(n,)`` or ``(n, d)``; labels as numbers.
        y: Array with the same number of rows.
        n_neighbors: $k$. More neighbours lower the variance and raise the bias.

    Reference: Gao, Kannan, Oh and Viswanath, Estimating Mutual Information for Discrete-Continuous Mixtures,
    arXiv:1709.06212, with digamma functions for its logarithms, as in the authors' code.

    Example:
        >>> coin = np.random.default_rng(0).integers(0, 2, size=2000)
        >>> round(mixed_ksg(coin, coin), 2), round(math.log(2), 2)
        (0.69, 0.69)
    """
    return float(mixed_ksg_pointwise(check_variables(("x", "y"), (x, y)), n_neighbors=n_neighbors).mean())


def ksg_pointwise(variables: Sequence[FloatArray], n_neighbors: int = 3) -> FloatArray:
    """Returns the contribution of each row to KSG of two variables, or to its total-correlation form for more."""
    rows = _check_neighbors(variables, n_neighbors)
    counts = _count_neighbors(variables, n_neighbors, NORMS["maximum"], 1 - MARGIN)
    constant = digamma(n_neighbors) + (len(variables) - 1) * digamma(rows)
    return constant - np.sum([digamma(count + 1) for count in counts], axis=0)


def ksg_improved_pointwise(variables: Sequence[FloatArray], n_neighbors: int = 3, norm: str = "maximum") -> FloatArray:
    """Returns the contribution of each row to the bias-improved KSG of two variables or more."""
    rows = _check_neighbors(variables, n_neighbors)
    if norm not in NORMS:
        raise ValueError(f"norm must be one of {', '.join(map(repr, NORMS))}; got {norm!r}")
    widths = [variable.shape[1] for variable in variables]
    volumes = sum(map(_log_ball, widths)) - _log_ball(sum(widths)) if norm == "euclidean" else 0.0
    counts = _count_neighbors(variables, n_neighbors, NORMS[norm], 1 + MARGIN)
    constant = digamma(n_neighbors) + (len(variables) - 1) * math.log(rows) + volumes
    return constant - np.sum(np.log(counts), axis=0)


def mixed_ksg_pointwise(variables: Sequence[FloatArray], n_neighbors: int = 5) -> FloatArray:
    """Returns the contribution of each row to the mixed KSG of two variables or more."""
    rows = _check_neighbors(variables, n_neighbors)
    groups = [np.hstack(variables), *variables]
    together, *alone = _count_neighbors(groups, n_neighbors, NORMS["maximum"], 1 - MARGIN)
    constant = (len(variables) - 1) * math.log(rows)
    return constant + digamma(together + 1) - np.sum([digamma(count + 1) for count in alone], axis=0)


def on_rows(
    function: Callable[..., FloatArray], variables: Sequence[FloatArray], **settings: Any
) -> Callable[[NDArray[np.intp]], float]:
    """Returns what maps positions of rows to the value that ``function`` gives to these rows alone."""
    wanted = settings.get("n_neighbors", inspect.signature(function).parameters["n_neighbors"].default)

    def value(rows: NDArray[np.intp]) -> float:
        settings["n_neighbors"] = min(wanted, len(rows) - 1)
        return float(function([variable[rows] for variable in variables], **settings).mean())

    return value


def _check_neighbors(variables: Sequence[FloatArray], n_neighbors: int) -> int:
    rows = len(variables[0])
    if not isinstance(n_neighbors, int | np.integer) or not 1 <= n_neighbors < rows:
        raise ValueError(f"n_neighbors must be an integer from 1 to {rows - 1} for {rows} rows; got {n_neighbors!r}")
    return rows


def _log_ball(width: int) -> float:
    """Logarithm of the volume of the unit ball."""
    return 0.5 * width * math.log(math.pi) - float(gammaln(0.5 * width + 1))


def _count_neighbors(variables: Sequence[FloatArray], n_neighbors: int, order: float, reach: float) -> Counts:
    """Counts, per variable and row, the other rows within ``reach`` times the distance of the joint k-th neighbour."""
    if max(variable.shape[1] for variable in variables) <= WIDEST_TREE:
        return _by_trees(variables, n_neighbors, order, reach)
    parts = zip(*_by_distances(variables, n_neighbors, order, reach), strict=True)
    return [torch.cat(part).numpy() for part in parts]


def _by_trees(variables: Sequence[FloatArray], n_neighbors: int, order: float, reach: float) -> Counts:
    together = np.hstack(variables)
    distances: FloatArray = np.asarray(cKDTree(together).query(together, n_neighbors + 1, p=order, workers=-1)[0])
    within = reach * distances[:, -1]
    return [_line_counts(v[:, 0], within) if v.shape[1] == 1 else _tree_counts(v, within, order) for v in variables]


def _tree_counts(variable: FloatArray, within: FloatArray, order: float) -> NDArray[np.int64]:
    # SciPy's tree is faster at finding the nearest rows, scikit-learn's at counting.
    tree = KDTree(variable, metric="minkowski" if order == 2 else "chebyshev")
    return tree.query_radius(variable, within, count_only=True) - 1


def _line_counts(column: FloatArray, within: FloatArray) -> NDArray[np.int64]:
    """Counts in one dimension, where neighbours are adjacent in sorted order."""
    ordered = np.sort(column)
    last = np.searchsorted(ordered, column + within, side="right")
    return last - np.searchsorted(ordered, column - within, side="left") - 1


def _by_distances(
    variables: Sequence[FloatArray], n_neighbors: int, order: float, reach: float
) -> Iterator[list[Tensor]]:
    """Counts for one chunk of rows after another, from the distances to all rows."""
    tensors = [torch.from_numpy(np.ascontiguousarray(variable)) for variable in variables]
    rows = len(tensors[0])
    for start in range(0, rows, max(1, CHUNK_DISTANCES // rows)):
        chunk = slice(start, start + max(1, CHUNK_DISTANCES // rows))
        apart = torch.stack([_distances(tensor[chunk], tensor, order) for tensor in tensors])
        together = apart.amax(0) if order == math.inf else apart.square().sum(0).sqrt()
        within = reach * _kth(together, n_neighbors)
        yield [(distance <= within).sum(1) - 1 for distance in apart]


def _distances(some: Tensor, rows: Tensor, order: float) -> Tensor:
    return torch.cdist(some, rows, p=order, compute_mode="donot_use_mm_for_euclid_dist")


def _kth(distances: Tensor, n_neighbors: int) -> Tensor:
    """Distance of the k-th neighbour, not counting the row itself."""
    return distances.topk(n_neighbors + 1, dim=1, largest=False).values[:, -1:]
