"""Ids of tasks as arrays, never one Python object a task: integers, or bytes of one width for strings and tuples.

A string is kept as UTF-8. A tuple is kept as JSON behind a byte that UTF-8 does not have.
"""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[Any]
Places = NDArray[np.int64]
Id = int | str | tuple[int | str, ...]
_LARGEST = np.iinfo(np.int64).max
_TUPLE = b"\xff"


def check_ids(tasks: Any, argument: str = "tasks") -> Ids:
    """Ids as a flat array of ``int64``, or of bytes for strings and tuples; anything else is a ``ValueError``.

    Example:
        >>> check_ids([3, 1]), check_ids(["é"])
        (array([3, 1]), array([b'\\xc3\\xa9'], dtype='|S2'))
        >>> check_ids([("shop", 3)])
        array([b'\\xff["shop", 3]'], dtype='|S12')
    """
    ids = _as_array(tasks)
    if ids.size == 0:
        raise ValueError(f"{argument} must hold at least one id")
    if ids.ndim != 1:
        hint = "; an id of several columns is a tuple: zip the columns" if ids.ndim == 2 else ""
        raise ValueError(f"{argument} must be flat, one id an exposure; got shape {ids.shape}{hint}")
    if ids.dtype.kind in "iu":
        if ids.dtype == np.uint64 and len(ids) and ids.max() > _LARGEST:
            raise ValueError(f"{argument} must be integers of at most {_LARGEST}; got {ids.max()}")
        return ids.astype(np.int64, copy=False)
    if ids.dtype.kind == "U":
        return np.char.encode(ids, "utf-8")
    if ids.dtype.kind == "O" and all(_is_tuple_of_ids(task) for task in ids.tolist()):
        return _tuples_as_bytes(ids.tolist())
    raise ValueError(f"{argument} must be all integers or all strings; got {_found(ids)}")


def as_given(ids: Ids) -> Ids:
    """The inverse of ``check_ids``: bytes become strings, or tuples, again."""
    if _kind(ids) == "tuples":
        return _of_objects(tuple(json.loads(task[1:])) for task in ids.tolist())
    return np.char.decode(ids, "utf-8") if ids.dtype.kind == "S" else ids


def same_kind(known: Ids, asked: Ids, argument: str = "tasks") -> None:
    """Raises a ``ValueError`` if ids are of another type than the ones the model knows."""
    wanted, got = _kind(known), _kind(asked)
    if wanted != got:
        raise ValueError(f"{argument} must be {wanted}, as the tasks that were fitted are; got {got}")


def _kind(ids: Ids) -> str:
    if ids.dtype.kind != "S":
        return "integers"
    return "tuples" if len(ids) and ids[0].startswith(_TUPLE) else "strings"


def _plain_type(task: Any) -> type:
    """The type of an id, NumPy's integers and strings counted as Python's; True and False are no integers here."""
    if isinstance(task, np.integer):
        return int
    return str if isinstance(task, str) else type(task)


def _is_tuple_of_ids(task: Any) -> bool:
    return isinstance(task, tuple) and all(_plain_type(part) in (int, str) for part in task)


def _tuples_as_bytes(tasks: list[tuple[Any, ...]]) -> Ids:
    """Each tuple is written once, however many exposures its task has."""
    written: dict[tuple[Any, ...], bytes] = {}
    for task in tasks:
        if task not in written:
            parts = [part if isinstance(part, str) else int(part) for part in task]
            written[task] = _TUPLE + json.dumps(parts, ensure_ascii=False).encode()
    return np.array([written[task] for task in tasks])


def _of_objects(values: Iterable[Any]) -> Ids:
    """A flat array of objects, where NumPy would make a matrix of tuples."""
    return np.fromiter(values, dtype=object)


def _as_array(tasks: Any) -> Ids:
    if isinstance(tasks, list | tuple) and any(isinstance(task, tuple) for task in tasks):
        return _of_objects(tasks)
    ids: Ids = np.asarray(tasks)
    # NumPy makes strings of [1, "a"]: look at what was given, where that is cheap to tell.
    if isinstance(tasks, list | tuple) and ids.dtype.kind == "U" and not all(isinstance(task, str) for task in tasks):
        return np.array(tasks, dtype=object)
    if ids.dtype.kind in "OT" and ids.ndim == 1:
        kinds = {_plain_type(task) for task in ids.tolist()}
        return ids.astype(next(iter(kinds))) if kinds in ({str}, {int}) else ids
    return ids


def _found(ids: Ids) -> str:
    if ids.dtype.kind != "O":
        return f"{ids.dtype}"
    types = sorted({type(task).__name__ for task in ids.ravel().tolist()})
    found = f"a mix of {' and '.join(types)}" if len(types) > 1 else types[0]
    return f"{found} (tuples of integers and strings are ids too; str makes one of anything else)"
