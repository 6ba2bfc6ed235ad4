"""Ids of tasks as arrays: integers, or strings kept as fixed-width UTF-8 bytes; never one Python object a task."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ids = NDArray[Any]
Places = NDArray[np.int64]
_LARGEST = np.iinfo(np.int64).max


def check_ids(tasks: ArrayLike, argument: str = "tasks") -> Ids:
    """Ids as a flat array of ``int64``, or of UTF-8 bytes for strings; anything else is a ``ValueError``.

    Example:
        >>> check_ids([3, 1]), check_ids(["é"])
        (array([3, 1]), array([b'\\xc3\\xa9'], dtype='|S2'))
    """
    ids = _as_array(tasks)
    if ids.ndim != 1:
        raise ValueError(f"{argument} must be flat, one id an exposure; got shape {ids.shape}")
    if ids.dtype.kind in "iu":
        if ids.dtype == np.uint64 and len(ids) and ids.max() > _LARGEST:
            raise ValueError(f"{argument} must be integers of at most {_LARGEST}; got {ids.max()}")
        return ids.astype(np.int64, copy=False)
    if ids.dtype.kind == "U":
        return np.char.encode(ids, "utf-8")
    raise ValueError(f"{argument} must be all integers or all strings; got {_found(ids)}")


def as_given(ids: Ids) -> Ids:
    """The inverse of ``check_ids``: bytes become strings again."""
    return np.char.decode(ids, "utf-8") if ids.dtype.kind == "S" else ids


def same_kind(known: Ids, asked: Ids, argument: str = "tasks") -> None:
    """Raises a ``ValueError`` if ids are of another type than the ones the model knows."""
    if known.dtype.kind != asked.dtype.kind:
        words = {"i": "integers", "S": "strings"}
        wanted, got = words[known.dtype.kind], words[asked.dtype.kind]
        raise ValueError(f"{argument} must be {wanted}, as the tasks that were fitted are; got {got}")


def _as_array(tasks: ArrayLike) -> Ids:
    ids: Ids = np.asarray(tasks)
    # NumPy makes strings of [1, "a"]: look at what was given, where that is cheap to tell.
    if isinstance(tasks, list | tuple) and ids.dtype.kind == "U" and not all(isinstance(task, str) for task in tasks):
        return np.array(tasks, dtype=object)
    if ids.dtype.kind in "OT" and ids.ndim == 1 and len(ids):
        kinds = {str if isinstance(task, str) else type(task) for task in ids.tolist()}
        return ids.astype(next(iter(kinds))) if kinds in ({str}, {int}) else ids
    return ids


def _found(ids: Ids) -> str:
    if ids.dtype.kind != "O":
        return f"{ids.dtype}"
    return "a mix of " + " and ".join(sorted({type(task).__name__ for task in ids.ravel().tolist()}))
