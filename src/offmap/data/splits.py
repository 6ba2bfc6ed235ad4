"""Open-set splits: the training set holds some of the classes, the test set holds all of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import train_test_split

from offmap.data.rows import as_texts

__all__ = ["OpenSplit", "hold_out_classes", "known_classes"]


@dataclass(frozen=True, eq=False)
class OpenSplit:
    """Training rows of the known classes, and test rows of all classes.

    Args:
        X_train: Training rows, in their original order.
        y_train: Labels of the training rows.
        X_test: The other rows of the known classes and all rows of the unknown ones, in their original order.
        y_test: True labels of the test rows.
        unknown: True for each test row of an unknown class.
    """

    X_train: NDArray[Any]
    y_train: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    unknown: NDArray[np.bool_]


def known_classes(labels: Iterable[Any], ratio: float, seed: int) -> NDArray[Any]:
    """Draws the classes to treat as known: ``choice(sorted labels, round(n · ratio))``.

    The draw equals that of published open-set code, which calls ``np.random.seed(seed)``; the global random state is
    not used.

    Args:
        labels: Labels in any order; repetitions do not matter.
        ratio: Fraction of the classes to treat as known, in (0, 1].
        seed: Seed of the draw.

    Example:
        >>> known_classes(["tea", "ale", "gin", "rum", "tea"], ratio=0.5, seed=0)
        array(['rum', 'tea'], dtype='<U3')
    """
    classes = np.unique(np.asarray(list(labels)))
    if not 0 < ratio <= 1 or not round(len(classes) * ratio):
        raise ValueError(f"ratio must be in (0, 1] and large enough to keep one of {len(classes)} classes, not {ratio}")
    return np.random.RandomState(seed).choice(classes, round(len(classes) * ratio), replace=False)


def hold_out_classes(
    X: ArrayLike | Sequence[str], y: ArrayLike, known: ArrayLike, *, test_size: float = 0.3, seed: int = 0
) -> OpenSplit:
    """Splits labelled rows into a training set of the known classes and a test set of all classes.

    Args:
        X: Rows: an array or texts.
        y: One label per row.
        known: The known classes.
        test_size: Fraction of each known class that goes into the test set.
        seed: Seed of the split.

    Example:
        >>> y = np.repeat([0, 1, 2], 4)
        >>> split = hold_out_classes(np.arange(24).reshape(12, 2), y, known=[0, 1], test_size=0.25)
        >>> split.y_train, split.y_test, split.unknown
        (array([0, 0, 0, 1, 1, 1]), array([0, 1, 2, 2, 2, 2]), array([False, False,  True,  True,  True,  True]))
    """
    rows, labels, classes = _as_rows(X), np.asarray(y), np.unique(np.asarray(known))
    if labels.shape != (len(rows),):
        raise ValueError(f"y must have shape ({len(rows)},), one label per row of X, not {labels.shape}")
    if not len(classes) or not set(classes.tolist()) <= set(labels.tolist()):
        raise ValueError(f"known must be one or more of the labels of y, not {classes.tolist()}")
    if not 0 < test_size < 1:
        raise ValueError(f"test_size must be in (0, 1), not {test_size}")
    is_known = np.isin(labels, classes)
    candidates = np.flatnonzero(is_known)
    train, _ = train_test_split(candidates, test_size=test_size, random_state=seed, stratify=labels[candidates])
    in_train = np.isin(np.arange(len(rows)), train)
    unknown = ~is_known[~in_train]
    return OpenSplit(rows[in_train], labels[in_train], rows[~in_train], labels[~in_train], unknown)


def _as_rows(X: ArrayLike | Sequence[str]) -> NDArray[Any]:
    rows = np.asarray(X)
    if not rows.ndim or not len(rows):
        raise ValueError(f"X must have at least one row, not the shape {rows.shape}")
    return as_texts(rows) if rows.dtype.kind == "U" else rows
