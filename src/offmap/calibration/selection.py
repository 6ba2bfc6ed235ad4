"""Rows to look at, so that a bounded share of them are false alarms."""

from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from offmap.arrays import FloatArray
from offmap.calibration.conformal import CalibrationWarning
from offmap.errors import warn_caller
from offmap.parameters import Count, Fraction, require

# Rarer novel rows than this share of a window should still be found; else a warning is due.
_RARE = 0.05


def select_rows(p_value: FloatArray, fdr: float = 0.1, window: int = 500) -> NDArray[np.bool_]:
    """Selects rows by the procedure of Benjamini and Hochberg, window by window.

    In each window of consecutive rows, at most a share ``fdr`` of the selected rows are normal, on average.

    Args:
        p_value: The conformal p-value of each row.
        fdr: False-discovery rate: share of false alarms among the selected rows.
        window: Rows that are judged together. Selecting row by row has next to no power with conformal p-values, which
            are never below 1 / (n + 1).

    Reference: Benjamini and Hochberg, Controlling the False Discovery Rate, 1995; for conformal p-values: Bates et al.,
        Testing for Outliers with Conformal p-values, 2023, theorem 2.

    Example:
        >>> select_rows(np.array([0.001, 0.9, 0.002, 0.04]), fdr=0.05)
        array([ True, False,  True, False])
    """
    require("fdr", fdr, Fraction)
    require("window", window, Count)
    starts = range(0, len(p_value), window)
    # A hair more than fdr, since the adjusted values carry rounding.
    parts = [false_discovery_control(p_value[start : start + window]) <= fdr * (1 + 1e-12) for start in starts]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)


def rows_needed_to_select(fdr: float, window: int, novel: int = 1) -> int:
    """How many held-out rows make it possible to select ``novel`` rows of a window.

    Args:
        fdr: False-discovery rate.
        window: Rows that are judged together.
        novel: How many of them are novel; the fewer, the more held-out rows are needed.

    Example:
        >>> rows_needed_to_select(0.1, 500), rows_needed_to_select(0.1, 500, novel=25)
        (4999, 199)
    """
    require("fdr", fdr, Fraction)
    require("window", window, Count)
    require("novel", novel, Count)
    return ceil(window / (fdr * novel) - 1e-9) - 1


def warn_if_blind(smallest: float, n: int, fdr: float, window: int) -> None:
    """Warns if nothing can be selected unless more than 5 % of a window are novel, and says how many rows would do.

    Args:
        smallest: The smallest p-value that there can be.
        n: Number of held-out rows.
        fdr: False-discovery rate.
        window: Rows that are judged together.
    """
    at_once = ceil(smallest * window / fdr - 1e-9)
    rare = max(1, int(_RARE * window))
    if at_once > rare:
        warn_caller(
            f"{n} calibration rows select nothing from {window} rows unless {at_once} of them are novel; "
            f"{rows_needed_to_select(fdr, window, rare)} calibration rows would find {rare} novel rows, "
            f"{rows_needed_to_select(fdr, window)} a single one; or choose a smaller window",
            CalibrationWarning,
        )
