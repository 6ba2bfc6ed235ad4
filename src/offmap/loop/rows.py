"""Rows as bytes and back: texts, feature rows and images."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from offmap.arrays import holds_text
from offmap.data.rows import as_texts
from offmap.data.text_checks import checked_texts
from offmap.openset.incremental import IncrementalClassifier
from offmap.store import JournalUnreadable

_TEXT, _ARRAY = b"t", b"a"


def pack(X: Any) -> list[bytes]:
    """One piece of bytes per row.

    Example:
        >>> [unpacked] = unpack(pack(["my card was swallowed"]))
        >>> str(unpacked)
        'my card was swallowed'
    """
    if holds_text(X):
        return [_TEXT + str(text).encode() for text in X]
    return [_packed(row) for row in np.asarray(X)]


def unpack(packed: Sequence[bytes]) -> NDArray[Any]:
    """The rows again, as one array of texts or numbers."""
    if packed and packed[0][:1] == _TEXT:
        return as_texts(row[1:].decode() for row in packed)
    first = _unpacked(packed[0])
    header = packed[0][: len(packed[0]) - first.nbytes]
    if first.flags.c_contiguous and all(row.startswith(header) and len(row) == len(packed[0]) for row in packed):
        # Rows of one type and shape differ in their numbers only; to parse thousands of headers takes a second.
        numbers = b"".join([row[len(header) :] for row in packed])
        return np.frombuffer(numbers, first.dtype).reshape(len(packed), *first.shape).copy()
    return np.stack([_unpacked(row) for row in packed])


def vectors(classifier: IncrementalClassifier, X: NDArray[Any]) -> NDArray[np.float32]:
    """Flat feature rows, made by the classifier's encoder if it has one."""
    encoded = X if classifier.encoder is None else classifier.encoder_.transform(X)
    return np.asarray(encoded, dtype=np.float32).reshape(len(X), -1)


def as_given(X: Any, columns: Sequence[str] | None = None) -> NDArray[Any]:
    """Rows of the user as one array; a single text is refused, since its letters would be taken for rows.

    Args:
        X: Texts, feature rows, images, or a data frame of numbers.
        columns: The columns that were taught: those of a data frame are matched with them by name.
    """
    if isinstance(X, str):
        raise ValueError("X is one text; give a list of them")
    if isinstance(X, pd.DataFrame):
        X = _numbers(_matched(X, columns))
    if holds_text(X):
        return as_texts(checked_texts(X))
    rows = np.asarray(X)
    if rows.ndim == 0 or len(rows) == 0:
        raise ValueError(f"X must hold at least one row; got shape {rows.shape}")
    if rows.ndim == 1 and rows.dtype.kind == "O":
        return as_texts(checked_texts(X))
    if rows.dtype.kind not in "biuf":
        raise ValueError(f"X must hold texts, feature rows or images; got an array of {rows.dtype}")
    return rows


def columns_of(X: Any) -> list[str] | None:
    """The names of the columns of a data frame; None without names."""
    named = isinstance(X, pd.DataFrame) and all(isinstance(name, str) for name in X.columns)
    return [str(name) for name in X.columns] if named else None


def same_row(packed: bytes, other: bytes) -> bool:
    """Whether two pieces of bytes hold the same row: the same text, or the same numbers to the model, of any type."""
    if packed == other or packed[:1] == _TEXT or other[:1] == _TEXT:
        return packed == other
    first, second = _unpacked(packed), _unpacked(other)
    return np.array_equal(np.asarray(first, np.float32), np.asarray(second, np.float32))


def require_encodable(name: str, text: str) -> str:
    """Refuses half a surrogate pair, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} {text!r} holds a broken character; remove it") from None
    return text


def _matched(X: pd.DataFrame, columns: Sequence[str] | None) -> pd.DataFrame:
    if columns is None or columns_of(X) is None:
        return X
    if missing := [name for name in columns if name not in X.columns]:
        raise ValueError(f"X lacks the columns {', '.join(map(repr, missing))}, which were taught")
    return X[[*columns]]


def _numbers(X: pd.DataFrame) -> pd.DataFrame:
    if strange := [name for name in X.columns if X[name].dtype.kind not in "biuf"]:
        raise ValueError(
            f"X holds other things than numbers in the columns {', '.join(map(repr, strange))}; encode them as numbers "
            "or leave them out, and give a column of texts alone"
        )
    return X


def _unpacked(row: bytes) -> NDArray[Any]:
    try:
        return np.asarray(np.load(io.BytesIO(row[1:]), allow_pickle=False))
    except Exception as error:  # damaged bytes raise errors of any kind: ValueError, EOFError, TokenError
        raise JournalUnreadable("a row in the journal is damaged; restore the journal from a copy") from error


def _packed(row: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, row, allow_pickle=False)
    return _ARRAY + stream.getvalue()
