"""Class labels: which values may be labels, what unknown rows are called, and arrays that hold both."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

UNKNOWN = -1
_SURROGATE = re.compile("[\ud800-\udfff]")


def check_labels(estimator: Any, X: Any, y: ArrayLike) -> NDArray[Any]:
    """Validates ``y`` as one class label per row of ``X``: ints or strings."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    _refuse_what_numpy_changes(y)
    labels: NDArray[Any] = as_labels(column_or_1d(_plain_types(y), warn=True))
    check_consistent_length(X, labels)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def as_labels(values: NDArray[Any]) -> NDArray[Any]:
    """Decides the type of labels: signed integers, whole floats, or strings. Anything else is a ``ValueError``.

    Unsigned integers and booleans become signed integers, so that -1 can stand beside them.

    Example:
        >>> as_labels(np.array([7, 3], dtype=np.uint8)), as_labels(np.array([True, False]))
        (array([7, 3]), array([1, 0]))
    """
    if values.dtype.kind in "iu" and values.size and int(values.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"y holds the class {values.max()}, which is beyond 64 bits; give such labels as strings")
    if values.dtype.kind in "biu":
        return values.astype(np.int64)
    if values.dtype.kind == "O":
        return _from_objects(values)
    if values.dtype.kind not in "fU":
        raise ValueError(f"y must hold integers or strings; got {values.dtype}; y.astype(str) makes strings of them")
    return values


def as_numbers(words: Sequence[str]) -> NDArray[Any] | None:
    """Labels written as numbers, such as those of a CSV file; None if they must stay strings.

    They stay strings if one of them is no number, has a leading zero, as codes have, or more digits than numbers do.

    Example:
        >>> as_numbers(["3", "-1"]), as_numbers(["007", "12"]), as_numbers(["12345678901234567890", "1"])
        (array([ 3, -1]), None, None)
    """
    if all(_INTEGER.fullmatch(word) for word in words):
        return np.array([int(word) for word in words], dtype=np.int64)
    if all(_DECIMAL.fullmatch(word) for word in words):
        return np.array([float(word) for word in words])
    return None


# At most 18 digits: all of these fit into 64 bits. At most 15 digits: a double keeps all of these.
_INTEGER = re.compile(r"\s*[+-]?(?:0|[1-9][0-9]{0,17})\s*")
_DECIMAL = re.compile(r"\s*[+-]?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{0,15})?(?:[eE][+-]?[0-9]{1,2})?\s*")


def _from_objects(values: NDArray[Any]) -> NDArray[Any]:
    """Labels given as Python objects, which must all be strings or all be numbers."""
    kinds = {_kind(value) for value in values.tolist()}
    if kinds == {str}:
        return values
    if kinds == {int}:
        largest = max(map(abs, values.tolist()))
        if largest > np.iinfo(np.int64).max:
            raise ValueError(f"y holds the class {largest}, which is beyond 64 bits; give such labels as strings")
        return values.astype(np.int64)
    if kinds <= {int, float}:
        return values.astype(np.float64)
    found = " and ".join(sorted(kind.__name__ for kind in kinds))
    raise ValueError(f"y must hold only integers or only strings; got {found}")


def _kind(value: Any) -> type:
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return int
    return next((kind for kind in (str, float) if isinstance(value, kind)), type(value))


def _plain_types(y: Any) -> Any:
    """NumPy's and pandas' own string types as objects, which scikit-learn knows, and pandas' integers as integers."""
    kind = getattr(getattr(y, "dtype", None), "kind", "")
    if kind in ("b", "i", "u") and hasattr(y, "to_numpy") and not y.isna().any():
        return y.to_numpy(dtype=np.int64)
    return np.asarray(y, dtype=object) if kind in ("T", "O") and getattr(y, "ndim", 1) == 1 else y


def _refuse_what_numpy_changes(y: Any) -> None:
    """NumPy drops NUL characters at the end of a string, so that two classes would become one."""
    if isinstance(y, np.ndarray) and y.dtype.kind not in "OTU":
        return
    for label in y if hasattr(y, "__iter__") else ():
        if isinstance(label, str) and (label.endswith("\0") or _SURROGATE.search(label)):
            raise ValueError(f"y holds {label!r}; a label must not end in NUL or have half a surrogate pair")


def known_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes in ascending order, and the code of each row's class.

    Example:
        >>> known_classes(np.array([7, 3, 7], dtype=np.uint8))
        (array([3, 7]), array([1, 0, 1]))
    """
    classes, codes = np.unique(as_labels(y), return_inverse=True)
    if len(classes) < 2:
        raise ValueError("y holds one class only; an open-set classifier needs two, one class is for a Detector")
    return classes, codes


def require_type_of(classes: NDArray[Any], labels: NDArray[Any]) -> None:
    """Raises a ``ValueError`` if labels are strings and the classes are not, or the reverse: NumPy takes "1" for 1.

    Example:
        >>> require_type_of(np.array([1, 2]), np.array(["1"]))
        Traceback (most recent call last):
        ValueError: y must hold integers, as in the first fit
    """
    strings = classes.dtype.kind in "UO"
    if (labels.dtype.kind in "UO") != strings:
        raise ValueError(f"y must hold {'strings' if strings else 'integers'}, as in the first fit")


def check_classes(classes: Any, unknown_label: Any) -> None:
    """Raises a ``ValueError`` unless these are classes and an unknown label as a fit leaves them.

    Example:
        >>> check_classes(np.array([2, 1]), -1)
        Traceback (most recent call last):
        ValueError: classes_ must be two or more different labels in ascending order
    """
    flat = isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.dtype.kind in "ifUO"
    if not flat or len(classes) < 2 or not np.array_equal(np.unique(as_labels(classes)), classes):
        raise ValueError("classes_ must be two or more different labels in ascending order")
    if type(unknown_label) not in (int, str) or choose_unknown_label(classes, unknown_label) != unknown_label:
        raise ValueError("unknown_label_ must be an integer or a string")


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
    if UNKNOWN not in classes:
        return UNKNOWN
    below = int(classes.min()) - 1
    if below >= np.iinfo(np.int64).min:
        return below
    return next(label for label in range(UNKNOWN - 1, below, -1) if label not in classes)


def with_unknown(closest: NDArray[Any], novel: NDArray[np.bool_], unknown_label: int | str) -> NDArray[Any]:
    """The label of each row: its closest class, or ``unknown_label`` where it is novel.

    Example:
        >>> with_unknown(np.array(["ant", "bee"]), np.array([False, True]), "unknown")
        array(['ant', 'unknown'], dtype='<U7')
    """
    return np.where(novel, np.asarray(unknown_label), closest)
