"""95 % intervals: a bootstrap of independent contributions, and random halves for contributions that depend."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t

from offmap.dependence.validation import FloatArray

RESAMPLES = 2000
# Splits into halves: as many as this work allows, counted in rows times squared columns, within these limits.
WORK, FEWEST_SPLITS, MOST_SPLITS = 200_000, 4, 20
# Splits of the same rows overlap: any number of them says as much about a variance as this many independent ones.
INDEPENDENT_SPLITS = 20

Interval = tuple[float, float]
Revalue = Callable[[NDArray[np.intp]], float]


def bootstrap_interval(pointwise: FloatArray, rng: np.random.Generator) -> Interval:
    """Returns the central 95 % of the means of rows resampled with replacement.

    Example:
        >>> low, high = bootstrap_interval(np.random.default_rng(0).normal(size=1000), np.random.default_rng(0))
        >>> -0.2 < low < high < 0.2
        True
    """
    rows = len(pointwise)
    means = np.concatenate(
        [
            pointwise[rng.integers(rows, size=(count, rows))].mean(1)
            for count in _chunk_sizes(RESAMPLES, max(1, 2_000_000 // rows))
        ]
    )
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def halves_interval(
    value: float, revalue: Revalue, rows: int, splits: int, rng: np.random.Generator, least: float = 0.0
) -> Interval:
    r"""Returns a Student interval whose variance comes from estimates on random halves of the rows.

    Contributions of neighbouring rows depend on each other, which a bootstrap of the contributions does not see. Two
    halves share no row, so the squared difference of their estimates is twice the variance at $n / 2$ rows, and the
    variance falls as $1 / n$.

    Args:
        value: The estimate from all rows.
        revalue: Returns the estimate from the rows at the given positions alone.
        rows: Number of rows.
        splits: Number of random splits into halves, over which the variance is averaged.
        rng: Draws the splits.
        least: Smallest standard error, which halves of a few rows can fall below.

    Reference: Holmes and Nemenman, Estimation of Mutual Information for Real-Valued Data with Error Bars and
    Controlled Bias, arXiv:1903.09280.

    Example:
        >>> numbers = np.random.default_rng(0).normal(size=400)
        >>> mean = lambda rows: float(numbers[rows].mean())
        >>> low, high = halves_interval(numbers.mean(), mean, 400, 20, np.random.default_rng(0))
        >>> bool(0.1 < high - low < 0.4), round(3.92 / 400**0.5, 2)
        (True, 0.2)
    """
    orders = [np.array_split(rng.permutation(rows), 2) for _ in range(splits)]
    error = math.sqrt(np.mean([(revalue(first) - revalue(second)) ** 2 for first, second in orders]) / 4)
    freedom = 1 / (1 / splits + 1 / INDEPENDENT_SPLITS)
    half = float(student_t.ppf(0.975, freedom)) * max(error, least)
    return value - half, value + half


def count_splits(work: int) -> int:
    """Returns how many splits into halves are made for an estimate of this work, in rows times squared columns.

    Example:
        >>> count_splits(100 * 2**2), count_splits(100_000 * 2**2)
        (20, 4)
    """
    return min(MOST_SPLITS, max(FEWEST_SPLITS, WORK // work))


def _chunk_sizes(whole: int, largest: int) -> list[int]:
    return [min(largest, whole - start) for start in range(0, whole, largest)]
