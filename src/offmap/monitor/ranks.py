"""Semi-online p-values: the rank of each row among the calibration rows and the rows that came before it."""

from bisect import bisect_left, bisect_right

import numpy as np

from offmap.arrays import FloatArray


def semi_online_p_values(past: FloatArray, stream: FloatArray, ties: FloatArray) -> FloatArray:
    r"""The share of earlier rows that are more novel than each row, with equal ones counted in part.

    $$p_t = \frac{\#\{i < t : s_i > s_t\} + \theta_t (1 + \#\{i < t : s_i = s_t\})}{t}$$

    over all rows before, calibration rows first. While all rows are exchangeable these are independent and uniform,
    however few calibration rows there are; p-values against a fixed calibration set are not independent.

    Args:
        past: Novelty of the rows before the stream, ``(runs, n)``, in ascending order in each run.
        stream: Novelty of the rows of the stream, ``(runs, m)``, in their order.
        ties: Uniform draws $\theta$, ``(runs, m)``.

    Reference: Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005, section 2.

    Example:
        >>> half = np.full((1, 3), 0.5)
        >>> semi_online_p_values(np.array([[1.0, 2.0, 3.0]]), np.array([[0.0, 9.0, 9.0]]), half).round(2)
        array([[0.88, 0.1 , 0.17]])
    """
    older = past.shape[1]
    pairs = list(zip(past, stream, strict=True))
    below = np.stack([np.searchsorted(rows, new, side="left") for rows, new in pairs])
    at_most = np.stack([np.searchsorted(rows, new, side="right") for rows, new in pairs])
    earlier_above, earlier_equal = _earlier(stream)
    greater = older - at_most + earlier_above
    equal = at_most - below + earlier_equal
    return np.asarray((greater + ties * (1 + equal)) / (older + 1 + np.arange(stream.shape[1])), dtype=np.float64)


def _earlier(stream: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How many earlier rows of each run are above each row, and how many equal it."""
    above, equal = np.empty(stream.shape), np.empty(stream.shape)
    for run, rows in enumerate(stream):
        seen: list[float] = []
        for t, row in enumerate(rows.tolist()):
            low, high = bisect_left(seen, row), bisect_right(seen, row)
            above[run, t], equal[run, t] = t - high, high - low
            seen.insert(high, row)
    return above, equal
