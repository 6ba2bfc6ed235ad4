"""Columns with values that many rows share, for which most estimators are not made."""

import math
import warnings
from collections.abc import Mapping

import numpy as np

from offmap.dependence.validation import TIE_NOISE, FloatArray

# Rows that hold repeated values, as a share of all rows, from which on a column counts as tied.
TIED_SHARE = 0.25
# Variables that a warning lists by name.
_NAMED = 3


class TiesWarning(UserWarning):
    """A variable has values that many rows share, and the estimator takes its columns as continuous."""


def has_ties(rows: FloatArray) -> bool:
    r"""Returns whether a column holds values that many rows share, such as labels, counts, or a frequent 0.

    Many means $2 \sqrt n$ rows: then two such columns that are independent still have four rows per pair of values on
    average. Numbers that are finely rounded do not count; neighbours treat them well as they are.

    Example:
        >>> has_ties(np.arange(100.0)[:, None]), has_ties(np.arange(100.0)[:, None] % 3)
        (False, True)
    """
    return any(_is_tied(column) for column in rows.T)


def warn_of_ties(variables: Mapping[str, FloatArray], estimator: str, stacklevel: int) -> None:
    """Warns once, naming the variables with ties, that ``estimator`` is not made for them."""
    tied = [name for name, rows in variables.items() if has_ties(rows)]
    if not tied:
        return
    more = f" and {len(tied) - _NAMED} more" if len(tied) > _NAMED else ""
    warnings.warn(
        f"{', '.join(tied[:_NAMED])}{more}: many rows share a value, but {estimator!r} takes columns as continuous "
        f"and may be far off; use 'mixed_ksg'",
        TiesWarning,
        stacklevel=stacklevel,
    )


def warn_of_outliers(
    raw: Mapping[str, FloatArray], standard: Mapping[str, FloatArray], estimator: str, stacklevel: int
) -> None:
    """Warns once, naming the variables whose standardised values lie closer to each other than the noise on ties."""
    crowded = [name for name, rows in raw.items() if any(map(_is_crowded, rows.T, standard[name].T))]
    if not crowded:
        return
    more = f" and {len(crowded) - _NAMED} more" if len(crowded) > _NAMED else ""
    warnings.warn(
        f"{', '.join(crowded[:_NAMED])}{more}: a few values lie so far out that the distances between the others are "
        f"lost, and {estimator!r} may be far off; use 'auto' or 'gaussian_copula', which rank values",
        UserWarning,
        stacklevel=stacklevel,
    )


def _is_crowded(raw: FloatArray, standard: FloatArray) -> bool:
    """Whether the middle half of the values, which differ, lies in less space than the noise gives as many rows."""
    low, high = np.quantile(standard, [0.25, 0.75])
    raw_low, raw_high = np.quantile(raw, [0.25, 0.75], method="lower")
    return bool(raw_low < raw_high and high - low < TIE_NOISE * len(raw))


def _is_tied(column: FloatArray) -> bool:
    counts = np.unique(column, return_counts=True)[1]
    often = counts[counts >= 2 * math.sqrt(len(column))].sum()
    return bool(often >= TIED_SHARE * len(column))
