"""How far from its rows the negatives of a class lie, chosen on the known classes alone.

Near negatives make heads that reject much, known rows too; far ones make heads that accept much. Which distance is
right differs from data set to data set. So some of the known classes play the open ones: heads are trained
on the others with each distance, and the one whose answers have the highest F1 is taken.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offmap.calibration.split import hold_out_evenly
from offmap.metrics import open_set_summary

Codes = NDArray[np.int64]

# Inner radii to choose from, as multiples of the root mean square distance between two rows of the class.
FACTORS = (1.0, 1.6, 2.4)
# Taken without a trial when there are too few classes or rows for one.
DEFAULT_FACTOR = 1.6
REJECTED = -1
_SPLITS = 2
_HELD_OUT = 0.3
# More sub-known classes would only take longer.
_MOST_CLASSES = 10


@dataclass(frozen=True)
class SubSplit:
    """Rows of sub-known classes to train on, and rows of sub-known and sub-open classes to answer.

    Args:
        train: Indices of the training rows.
        codes: Codes 0, 1, … of the sub-known classes of the training rows.
        test: Indices of the test rows.
        truth: Codes of the test rows; ``REJECTED`` for rows of sub-open classes.
    """

    train: NDArray[np.intp]
    codes: Codes
    test: NDArray[np.intp]
    truth: Codes

    def f1(self, answers: Codes) -> float:
        """Returns the mean F1 of the sub-known classes and the open one."""
        return open_set_summary(self.truth, answers, np.unique(self.codes), REJECTED)["f1"]


def sub_splits(y: Codes, rng: np.random.Generator) -> Iterator[SubSplit]:
    """Splits the known classes into sub-known and sub-open halves, each class with the same share of test rows.

    Nothing is yielded for fewer than three classes, or if no row of a sub-known class can be held out.
    """
    classes = np.unique(y)
    half = min(max(2, len(classes) // 2), _MOST_CLASSES)
    for _ in range(_SPLITS if len(classes) > 2 else 0):
        order = rng.permutation(classes)
        known, other = np.sort(order[:half]), order[half : 2 * half + 1]
        own = np.flatnonzero(np.isin(y, known))
        codes = np.searchsorted(known, y[own])
        train, held_out = hold_out_evenly(codes, _HELD_OUT, rng)
        _, sub_open = hold_out_evenly(y[rows := np.flatnonzero(np.isin(y, other))], _HELD_OUT, rng)
        if len(held_out) and len(sub_open):
            truth = np.concatenate([codes[held_out], np.full(len(sub_open), REJECTED)])
            yield SubSplit(own[train], codes[train], np.concatenate([own[held_out], rows[sub_open]]), truth)


def choose_factor(answers: Callable[[SubSplit], Codes], y: Codes, rng: np.random.Generator) -> float:
    """Returns the factor of the radius whose answers have the highest mean F1 over the splits.

    Args:
        answers: Trains on a split with each factor, and returns the codes of the test rows, or ``REJECTED``, in one row
            per factor.
        y: Codes of the known classes of the training rows.
        rng: Draws the splits.
    """
    scores = [[split.f1(codes) for codes in answers(split)] for split in sub_splits(y, rng)]
    return FACTORS[int(np.mean(scores, axis=0).argmax())] if scores else DEFAULT_FACTOR
