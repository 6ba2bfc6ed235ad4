"""Warnings of what weakens a promise: rows that it does not cover, copies of rows, scores that depend on other rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.arrays import Rows
from offmap.calibration.conformal import CalibrationWarning
from offmap.calibration.fingerprint import Fingerprint
from offmap.errors import warn_caller

# Copies among the rows that are let pass without a word.
MOST_COPIES = 0.2


def warn_of_uncovered(groups: NDArray[np.int64], small: NDArray[np.int64], names: NDArray[Any], alpha: float) -> None:
    """Warns if more than a share ``alpha`` of the rows is in groups that only train: the rate of all is then open.

    Args:
        groups: Group of each row, as a place in ``names``.
        small: The groups that only train.
        names: What the user calls them.
        alpha: The promised rate.
    """
    share = float(np.isin(groups, small).mean())
    if share <= alpha:
        return
    first = ", ".join(str(name) for name in names[small[:3]]) + (", …" if len(small) > 3 else "")
    warn_caller(
        f"{len(small)} of {len(names)} classes or entities ({first}), with {share:.0%} of the rows, have too few rows "
        "to hold any out; the promised rate covers the rows of the others only",
        CalibrationWarning,
    )


def warn_of_copies(rows: Rows) -> None:
    """Warns if many rows are copies of others: copies of training rows among the held-out ones look too normal."""
    flat = rows.reshape(len(rows), -1)
    # Equal rows have equal sums, and different rows hardly ever have: one sort of numbers instead of rows.
    weights = np.random.default_rng(0).uniform(1, 2, size=flat.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        sums = flat.astype(np.float64, copy=False) @ weights
    copies = 1 - len(np.unique(sums)) / len(sums)
    if copies > MOST_COPIES:
        warn_caller(
            f"{copies:.0%} of the rows are copies of other rows; a row with a copy in training looks too normal, so "
            "that rows without one are flagged more often than promised; remove copies before the fit",
            CalibrationWarning,
        )


def warn_of_company(fingerprint: Fingerprint, model: Any, novelty: Callable[[Any], Any]) -> None:
    """Warns if the first rows score differently without the others: calibration then says little about later rows."""
    if fingerprint.differs(model, novelty):
        warn_caller(
            "the score of a row depends on the rows that are scored with it, or on chance; the promised rate may not "
            "hold, and a saved file will not recognise the model; use a detector that scores each row by itself",
            CalibrationWarning,
        )


def warn_of_other_names(predicted: NDArray[Any], closest: NDArray[Any]) -> None:
    """Warns if a classifier answers with another class than the one it finds most likely, which Guarded names.

    Args:
        predicted: What the classifier predicts.
        closest: The most likely class of each row.
    """
    if share := float(np.mean(predicted != closest)):
        warn_caller(
            f"the classifier predicts another class than its most likely one for {share:.1%} of the calibration rows, "
            "as with a decision threshold of its own; Guarded names the most likely class: take the class of rows that "
            "are not novel from classifier_.predict",
            CalibrationWarning,
        )
