"""Class labels: which values may be labels, what unknown rows are called, and arrays that hold both."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

UNKNOWN = -1


def check_labels(estimator: Any, X: Any, y: ArrayLike) -> NDArray[Any]:
    """Validates ``y`` as one class label per row of ``X``: ints or strings."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    check_consistent_length(X, labels)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def known_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes in ascending order, and the code of each row's class.

    Unsigned integers become signed ones, so that -1 can stand beside them.

    Example:
        >>> known_classes(np.array([7, 3, 7], dtype=np.uint8))
        (array([3, 7]), array([1, 0, 1]))
    """
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError("y holds one class only; an open-set classifier needs two, one class is for a Detector")
    return _signed(classes), codes


def _signed(classes: NDArray[Any]) -> NDArray[Any]:
    if classes.dtype.kind != "u":
        return classes
    if classes.max() > np.iinfo(np.int64).max:
        raise ValueError(f"y holds the class {classes.max()}, which is beyond 64 bits; give such labels as strings")
    return classes.astype(np.int64)


def choose_unknown_label(classes: NDArray[Any], wanted: int | str | None) -> int | str:
    """What novel rows are called: ``wanted``, or -1, or "unknown" among strings.

    Example:
        >>> choose_unknown_label(np.array([-1, 0, 1]), None), choose_unknown_label(np.array(["ant", "bee"]), None)
        (-2, 'unknown')
    """
    strings = classes.dtype.kind in "UO"
    label = _default_label(classes, strings) if wanted is None else wanted
    if isinstance(label, str) != strings:
        raise ValueError(f"unknown_label {label!r} must be {'a string' if strings else 'a number'}, as y is")
    if label in classes:
        raise ValueError(f"unknown_label {label!r} is a class of y; choose another")
    return label


def _default_label(classes: NDArray[Any], strings: bool) -> int | str:
    if strings:
        return "unknown"
    return int(classes.min()) - 1 if UNKNOWN in classes else UNKNOWN


def with_unknown(closest: NDArray[Any], novel: NDArray[np.bool_], unknown_label: int | str) -> NDArray[Any]:
    """The label of each row: its closest class, or ``unknown_label`` where it is novel.

    Example:
        >>> with_unknown(np.array(["ant", "bee"]), np.array([False, True]), "unknown")
        array(['ant', 'unknown'], dtype='<U7')
    """
    return np.where(novel, np.asarray(unknown_label), closest)
