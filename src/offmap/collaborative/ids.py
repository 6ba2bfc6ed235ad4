"""Ids of entities as NumPy arrays: integers, or bytes of one width for strings and tuples.

No Python object is kept per entity. A string is stored as UTF-8, a tuple as JSON behind a byte that never occurs in
UTF-8.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[Any]
Places = NDArray[np.int64]
Id = int | str | tuple[int | str, ...]
_LARGEST = np.iinfo(np.int64).max
_TUPLE = b"\xff"
_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")


def check_ids(entities: Any, argument: str = "entities") -> Ids:
    """Ids as a flat array of ``int64``, or of bytes for strings and tuples; anything else is a ``ValueError``.

    Example:
        >>> check_ids([3, 1]), check_ids(["é"])
        (array([3, 1]), array([b'\\xc3\\xa9'], dtype='|S2'))
        >>> check_ids([("shop", 3)])
        array([b'\\xff["shop", 3]'], dtype='|S12')
    """
    _refuse_trailing_nul(entities, argument)
    ids = _as_array(entities)
    if ids.size == 0:
        raise ValueError(f"{argument} must hold at least one id")
    if ids.ndim == 0:
        raise ValueError(f"{argument} must be a list of ids; got {entities!r} alone")
    if ids.ndim != 1:
        hint = "; an id of several columns is a tuple: zip the columns" if ids.ndim == 2 else ""
        raise ValueError(f"{argument} must be flat, one id per row; got shape {ids.shape}{hint}")
    if ids.dtype.kind in "iu":
        if ids.dtype == np.uint64 and len(ids) and ids.max() > _LARGEST:
            raise ValueError(f"{argument} must be integers of at most {_LARGEST}; got {ids.max()}")
        return ids.astype(np.int64, copy=False)
    try:
        if ids.dtype.kind == "U":
            return np.char.encode(ids, "utf-8")
        if ids.dtype.kind == "O" and all(_is_tuple_of_ids(entity) for entity in ids.tolist()):
            return _tuples_as_bytes(ids.tolist())
    except UnicodeEncodeError as error:
        raise ValueError(f"{argument} holds {error.object!r}; an id must not have half a surrogate pair") from None
    raise ValueError(f"{argument} must be all integers or all strings; got {_found(ids)}")


def as_given(ids: Ids) -> Ids:
    """The inverse of ``check_ids``: bytes become strings, or tuples, again."""
    if _kind(ids) == "tuples":
        return _of_objects(tuple(json.loads(entity[1:])) for entity in ids.tolist())
    return np.char.decode(ids, "utf-8") if ids.dtype.kind == "S" else ids


def same_kind(known: Ids, asked: Ids, argument: str = "entities") -> None:
    """Raises a ``ValueError`` if ids are of another type than the ones the model knows."""
    wanted, got = _kind(known), _kind(asked)
    if wanted != got:
        remedy = _remedy(wanted, as_given(asked)) if "tuples" not in (wanted, got) else ""
        raise ValueError(f"{argument} must be {wanted}, as the fitted entities are; got {got}{remedy}")


def _remedy(wanted: str, asked: Ids) -> str:
    """What to do about ids of the other type."""
    if wanted == "strings":
        return "; pass str(id)"
    odd = next((entity for entity in asked.tolist() if not _INTEGER.fullmatch(entity)), None)
    return "; pass int(id)" if odd is None else f", such as {odd!r}; write an integer there, or leave the row out"


def _kind(ids: Ids) -> str:
    if ids.dtype.kind != "S":
        return "integers"
    return "tuples" if len(ids) and ids[0].startswith(_TUPLE) else "strings"


def _refuse_trailing_nul(entities: Any, argument: str) -> None:
    """NumPy drops NUL characters at the end of a string, so that two ids would become one."""
    if isinstance(entities, np.ndarray) and entities.dtype.kind not in "OT":
        return
    for entity in entities if hasattr(entities, "__iter__") else ():
        if isinstance(entity, str) and entity.endswith("\0"):
            raise ValueError(f"{argument} holds {str(entity)!r}; an id must not end in a NUL character")


def _plain_type(entity: Any) -> type:
    """The type of an id; NumPy's integers and strings count as Python's, True and False not as integers."""
    if isinstance(entity, np.integer):
        return int
    return str if isinstance(entity, str) else type(entity)


def _is_tuple_of_ids(entity: Any) -> bool:
    return isinstance(entity, tuple) and all(_plain_type(part) in (int, str) for part in entity)


def _tuples_as_bytes(entities: list[tuple[Any, ...]]) -> Ids:
    """Each distinct tuple is written once, however many rows its entity has."""
    written: dict[tuple[Any, ...], bytes] = {}
    for entity in entities:
        if entity not in written:
            parts = [part if isinstance(part, str) else int(part) for part in entity]
            written[entity] = _TUPLE + json.dumps(parts, ensure_ascii=False).encode()
    return np.array([written[entity] for entity in entities])


def _of_objects(values: Iterable[Any]) -> Ids:
    """A flat array of objects, where NumPy would make a matrix of tuples."""
    return np.fromiter(values, dtype=object)


def _as_array(entities: Any) -> Ids:
    if isinstance(entities, list | tuple) and any(isinstance(entity, tuple) for entity in entities):
        return _of_objects(entities)
    ids: Ids = np.asarray(entities)
    # NumPy makes strings of [1, "a"]: look at what was given, where that is cheap to tell.
    if isinstance(entities, list | tuple) and ids.dtype.kind == "U" and not all(isinstance(e, str) for e in entities):
        return np.array(entities, dtype=object)
    if ids.dtype.kind in "OT" and ids.ndim == 1:
        kinds = {_plain_type(entity) for entity in ids.tolist()}
        if kinds == {int} and any(abs(entity) > _LARGEST for entity in ids.tolist()):
            raise ValueError(f"ids must be integers of at most {_LARGEST}; pass str(id) for longer ones")
        return ids.astype(next(iter(kinds))) if kinds in ({str}, {int}) else ids
    return ids


def _found(ids: Ids) -> str:
    if ids.dtype.kind == "f":
        # A column of integers with a gap becomes floats in pandas, and keeps its decimal points in a file.
        return f"{ids.dtype}; write whole numbers without a decimal point, as with .astype(int), or pass str(id)"
    if ids.dtype.kind != "O":
        return f"{ids.dtype}"
    types = sorted({type(entity).__name__ for entity in ids.ravel().tolist()})
    found = f"a mix of {' and '.join(types)}" if len(types) > 1 else types[0]
    return f"{found} (tuples of integers and strings are ids too; for anything else pass str(id))"
