"""Storing nested Python values that contain tensors in one safetensors file.

Tensors and numeric arrays are stored as tensors; everything else is stored as JSON in the metadata, with a tag for
types that JSON lacks. Reading a file never runs code from it. A digest of the whole content tells a damaged file from
an intact one; it does not tell who wrote it.
"""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor

from offmap.errors import reason_of
from offmap.files import replacing

# One key holds the checksum and the JSON: the order of two would differ from file to file.
_KEY = "offmap"
# Python's values take some twenty times the bytes of their JSON, so that this bounds them to a few hundred MB.
_LONGEST_HEADER = 1 << 24
# An array of strings has the width of its longest: few bytes in a file could ask for any amount of memory.
_MOST_STRING_BYTES = 1 << 28
_STRING_DTYPE = re.compile(r"[<>|=]?(?:U(\d{1,9})|O)")
_PLAIN = (str, int, float, bool, type(None))


class TensorFileError(ValueError):
    """A file is damaged or was not written by Offmap; the message says which."""


def write(path: str | os.PathLike[str], value: Any) -> None:
    """Writes ``value`` to ``path``; an error leaves the old file as it was.

    Args:
        path: The file.
        value: Nested dicts, lists and tuples of numbers, strings, booleans, None, arrays and tensors.

    Raises:
        TypeError: A part of ``value`` has another type; the message names it.
    """
    tensors: dict[str, Tensor] = {}
    form = json.dumps(_pack(value, "value", tensors))
    if len(form) > _LONGEST_HEADER:
        raise TypeError(
            f"the value has {len(form):,} bytes beside its arrays; at most {_LONGEST_HEADER:,} can be saved"
        )
    content = save(tensors, metadata={_KEY: f"{_digest(form, tensors)} {form}"})
    with replacing(path) as fresh:
        fresh.write_bytes(content)


def read(path: str | os.PathLike[str]) -> Any:
    """Reads a value that ``write`` wrote.

    Raises:
        FileNotFoundError: There is no such file.
        TensorFileError: The file is damaged or was not written by Offmap.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {os.fspath(path)}")
    try:
        # Read, not mapped: a mapped file that another process cuts short would kill this one.
        content = Path(path).read_bytes()
        metadata, tensors = _metadata(content), load(content)
    except Exception as error:  # a damaged file can raise any error
        raise TensorFileError(f"{os.fspath(path)} is not a whole safetensors file: {reason_of(error)}") from None
    if _KEY not in metadata:
        raise TensorFileError(f"{os.fspath(path)} is a safetensors file, but not one that Offmap wrote")
    try:
        return _unpack(json.loads(_intact_form(metadata[_KEY], tensors)), tensors)
    except TensorFileError as error:
        raise TensorFileError(f"{os.fspath(path)} {reason_of(error)}") from None
    except Exception as error:  # damaged metadata can raise any error
        raise TensorFileError(f"{os.fspath(path)} has damaged metadata: {reason_of(error)}") from None


def _metadata(content: bytes) -> dict[str, str]:
    """The texts in the header of a safetensors file; that it fits the tensors is checked by the library."""
    length = int.from_bytes(content[:8], "little")
    # Escaping in a JSON string can double the metadata.
    if len(content) < 8 or length > min(len(content), 4 * _LONGEST_HEADER):
        raise ValueError("its header is cut or too long")
    header = json.loads(content[8 : 8 + length])
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def _digest(form: str, tensors: dict[str, Tensor]) -> str:
    """One digest of everything in a file: the JSON and each tensor's name, type, shape and bytes."""
    whole = hashlib.sha256(form.encode())
    for name, tensor in sorted(tensors.items()):
        whole.update(repr((name, str(tensor.dtype), tuple(tensor.shape))).encode())
        whole.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().data if tensor.numel() else b"")
    return whole.hexdigest()


def _intact_form(written: str, tensors: dict[str, Tensor]) -> str:
    """The JSON behind its checksum."""
    if not isinstance(written, str) or len(written) > 2 * _LONGEST_HEADER:
        raise TensorFileError("has metadata that are too long")
    digest, _, form = written.partition(" ")
    if digest != _digest(form, tensors):
        raise TensorFileError("is damaged: its content does not match its checksum")
    return form


def _pack(value: Any, key: str, tensors: dict[str, Tensor]) -> Any:
    """Returns the JSON form of ``value`` and adds its tensors to ``tensors``, named by their path in ``value``."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Tensor):
        return _pack_tensor("$tensor", value.detach().cpu(), key, tensors)
    if isinstance(value, np.ndarray):
        return _pack_array(value, key, tensors)
    if isinstance(value, list):
        return [_pack(item, f"{key}.{i}", tensors) for i, item in enumerate(value)]
    if isinstance(value, tuple):
        return {"$tuple": _pack(list(value), key, tensors)}
    if isinstance(value, dict):
        return {"$dict": [[_pack(part, f"{key}.{item[0]}", tensors) for part in item] for item in value.items()]}
    raise TypeError(f"{key.removeprefix('value.')} is a {type(value).__name__}, which cannot be saved")


def _pack_array(value: np.ndarray[Any, Any], key: str, tensors: dict[str, Tensor]) -> Any:
    native = value.dtype.newbyteorder("=")
    if native.kind in "biuf" and native.itemsize <= 8:
        return _pack_tensor("$array", torch.from_numpy(np.array(value, dtype=native)), key, tensors)
    if value.dtype.kind in "UO" and all(isinstance(item, str) for item in value.flat):
        return {"$strings": value.ravel().tolist(), "shape": list(value.shape), "dtype": value.dtype.str}
    raise TypeError(f"{key.removeprefix('value.')} is an array of {value.dtype}, which cannot be saved")


def _pack_tensor(tag: str, value: Tensor, key: str, tensors: dict[str, Tensor]) -> Any:
    while key in tensors:  # {"a": {"b": …}} and {"a.b": …} give the same path
        key += "'"
    # Copied, because safetensors refuses tensors that share memory.
    tensors[key] = value.clone(memory_format=torch.contiguous_format)
    return {tag: key, "shape": list(value.shape), "dtype": str(value.dtype)}


def _unpack(form: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(form, list):
        return [_unpack(item, tensors) for item in form]
    if not isinstance(form, dict):
        return form
    if "$tuple" in form:
        return tuple(_unpack(form["$tuple"], tensors))
    if "$dict" in form:
        return {_unpack(name, tensors): _unpack(item, tensors) for name, item in form["$dict"]}
    if "$strings" in form:
        return _unpack_strings(form["$strings"], form["dtype"], form["shape"])
    if "$array" in form:
        return _unpack_tensor(form["$array"], form, tensors).numpy()
    return _unpack_tensor(form["$tensor"], form, tensors)


def _unpack_strings(strings: list[str], dtype: str, shape: list[int]) -> np.ndarray[Any, Any]:
    found = _STRING_DTYPE.fullmatch(dtype)
    if found is None or not all(isinstance(item, str) for item in strings) or not all(size >= 0 for size in shape):
        raise TensorFileError("holds an array of strings that is none")
    if 4 * int(found[1] or 0) * len(strings) > _MOST_STRING_BYTES:
        raise TensorFileError(f"holds {len(strings)} strings as {dtype}, which is more than memory should hold")
    return np.array(strings, dtype=dtype).reshape(shape)


def _unpack_tensor(key: str, form: dict[str, Any], tensors: dict[str, Tensor]) -> Tensor:
    if key not in tensors:
        raise TensorFileError(f"lacks the tensor {key.removeprefix('value.')!r}")
    found = tensors[key]
    if list(found.shape) != form["shape"] or str(found.dtype) != form["dtype"]:
        raise TensorFileError(
            f"holds the tensor {key.removeprefix('value.')!r} as {found.dtype} of shape {list(found.shape)}, "
            f"but {form['dtype']} of shape {form['shape']} was expected"
        )
    return found
