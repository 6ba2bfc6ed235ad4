"""SAFFRON: rows are selected one by one, as they come, at a false-discovery rate."""

import numpy as np
from numpy.typing import NDArray

# Sum of j to the power of -1.6 over all j.
_SUM = 2.2857656


def saffron(p_value: NDArray[np.float64], fdr: float, candidate: float = 0.5) -> NDArray[np.bool_]:
    r"""Selects each row by its p-value and those before it.

    Row $t$ is selected at $p_t \le \min(\lambda, (1 - \lambda) a_t)$ with

    $$a_t = w \gamma_{n_0} + (\alpha - w) \gamma_{n_1} + \alpha \sum_{j \ge 2} \gamma_{n_j}, \qquad w = \alpha / 2,$$

    $\gamma_k \propto k^{-1.6}$, where $n_j$ is 1 plus the number of rows with $p > \lambda$ since the $j$-th selection.

    Args:
        p_value: The p-value of each row, in the order in which they came.
        fdr: The false-discovery rate $\alpha$.
        candidate: The bound $\lambda$ below which a row counts as a candidate, which costs nothing.

    Reference: Ramdas, Zrnic, Wainwright and Jordan, SAFFRON: an Adaptive Algorithm for Online Control of the False
        Discovery Rate, 2018.

    Example:
        >>> saffron(np.array([0.0001, 0.9, 0.9, 0.001]), 0.1)
        array([ True, False, False,  True])
    """
    gamma = np.arange(1.0, len(p_value) + 2) ** -1.6 / _SUM
    chosen, since = np.zeros(len(p_value), dtype=bool), np.array([1])
    for row, value in enumerate(p_value):
        wealth = np.full(len(since), fdr)
        wealth[0] = fdr / 2
        wealth[1:2] = fdr / 2
        level = (1 - candidate) * float(wealth @ gamma[since - 1])
        chosen[row] = value <= min(candidate, level)
        since = since + (value > candidate)
        if chosen[row]:
            since = np.append(since, 1)
    return chosen
