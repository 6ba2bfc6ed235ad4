"""Rows as bytes and back: texts, feature rows and images."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.arrays import holds_text
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
        return np.array([row[1:].decode() for row in packed])
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


def as_given(X: Any) -> NDArray[Any]:
    """Rows of the user as one array; a single text is refused, since its letters would be taken for rows."""
    if isinstance(X, str):
        raise ValueError("X is one text; give a list of them")
    rows = np.asarray(X)
    if rows.ndim == 0 or len(rows) == 0:
        raise ValueError(f"X must hold at least one row; got shape {rows.shape}")
    if rows.dtype.kind not in "biufU" and not holds_text(X):
        raise ValueError(f"X must hold texts, feature rows or images; got an array of {rows.dtype}")
    return rows.astype(str) if holds_text(X) else rows


def _unpacked(row: bytes) -> NDArray[Any]:
    try:
        return np.asarray(np.load(io.BytesIO(row[1:]), allow_pickle=False))
    except Exception as error:  # damaged bytes raise errors of any kind: ValueError, EOFError, TokenError
        raise JournalUnreadable("a row in the journal is damaged; restore the journal from a copy") from error


def _packed(row: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, row, allow_pickle=False)
    return _ARRAY + stream.getvalue()
