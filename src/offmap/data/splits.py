"""Open-set splits: some classes are taught, the others are met at test time only."""

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
    """Training rows of known classes, and test rows of all classes.

    Args:
        X_train: Rows of known classes, in their order.
        y_train: Their labels.
        X_test: The other rows of known classes, and all rows of unknown classes, in their order.
        y_test: Their true labels.
        unknown: Which test rows belong to no known class.
    """

    X_train: NDArray[Any]
    y_train: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    unknown: NDArray[np.bool_]


def known_classes(labels: Iterable[Any], ratio: float, seed: int) -> NDArray[Any]:
    """Draws the known classes as the field's common code does: ``choice(sorted labels, round(n · ratio))``.

    The stream is that of ``np.random.seed(seed)``, drawn from a generator of its own.

    Args:
        labels: Labels, in any order and number.
        ratio: Share of the classes to be known, in (0, 1].
        seed: Seed of the draw.

    Example:
        >>> known_classes(["tea", "ale", "gin", "rum", "tea"], ratio=0.5, seed=0)
        array(['rum', 'tea'], dtype='<U3')
    """
    classes = np.unique(np.asarray(list(labels)))
    if not 0 < ratio <= 1 or not round(len(classes) * ratio):
        raise ValueError(f"ratio must be in (0, 1] and keep a class of {len(classes)}, not {ratio}")
    return np.random.RandomState(seed).choice(classes, round(len(classes) * ratio), replace=False)


def hold_out_classes(
    X: ArrayLike | Sequence[str], y: ArrayLike, known: ArrayLike, *, test_size: float = 0.3, seed: int = 0
) -> OpenSplit:
    """Splits rows so that training sees known classes only and the test meets the others too.

    Args:
        X: Rows: an array, or texts.
        y: One label a row.
        known: The classes to teach.
        test_size: Share of each known class that is kept for the test.
        seed: Seed of the split.

    Example:
        >>> y = np.repeat([0, 1, 2], 4)
        >>> split = hold_out_classes(np.arange(24).reshape(12, 2), y, known=[0, 1], test_size=0.25)
        >>> split.y_train, split.y_test, split.unknown
        (array([0, 0, 0, 1, 1, 1]), array([0, 1, 2, 2, 2, 2]), array([False, False,  True,  True,  True,  True]))
    """
    rows, labels, taught = _as_rows(X), np.asarray(y), np.unique(np.asarray(known))
    if labels.shape != (len(rows),):
        raise ValueError(f"y must have shape ({len(rows)},), one label a row of X, not {labels.shape}")
    if not len(taught) or not set(taught.tolist()) <= set(labels.tolist()):
        raise ValueError(f"known must be one or more of the labels of y, not {taught.tolist()}")
    if not 0 < test_size < 1:
        raise ValueError(f"test_size must be in (0, 1), not {test_size}")
    is_known = np.isin(labels, taught)
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
