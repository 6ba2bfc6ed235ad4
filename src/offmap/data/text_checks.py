"""What texts and labels an encoder accepts; anything else is a ``ValueError`` that names the item."""

import re
from collections.abc import Collection, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

__all__ = ["Texts", "checked_texts", "class_codes"]

# Half of a surrogate pair has no UTF-8 encoding.
_SURROGATE = re.compile("[\ud800-\udfff]")

Texts = str | Collection[str] | ArrayLike


def checked_texts(X: Any) -> list[str]:
    """Returns the texts of ``X`` as a list, or raises a ``ValueError``."""
    texts = [X] if isinstance(X, str) else X
    if not isinstance(texts, Collection) or isinstance(texts, bytes | Mapping | Set) or getattr(texts, "ndim", 1) != 1:
        raise ValueError(f"X must be a text or a one-dimensional list or array of texts; got {type(X).__name__}")
    if not len(texts):
        raise ValueError("X holds no texts; give at least one")
    for position, text in enumerate(texts):
        if problem := _problem(text):
            raise ValueError(f"X[{position}] {problem}; every item of X must be a non-empty text")
    return [str(text) for text in texts]


def _problem(text: object) -> str:
    if not isinstance(text, str):
        return f"is {text!r}, a {type(text).__name__}" if text is not None else "is None"
    if not text.strip():
        return "is empty"
    return "has half a surrogate pair, which is not a character" if _SURROGATE.search(text) else ""


def class_codes(texts: list[str], y: ArrayLike | None) -> NDArray[np.int64]:
    """Returns the code of the class of each text."""
    if y is None:
        raise ValueError("tune_layers above 0 requires y to be passed, but the target y is None")
    labels = column_or_1d(y)
    check_consistent_length(texts, labels)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError("y holds one class only; tune_layers above 0 needs two or more")
    return codes
