"""Storing nested Python values that contain tensors in one safetensors file.

Tensors and numeric arrays are stored as tensors; everything else is stored as JSON in the metadata, with a tag for
types that JSON lacks. Reading a file never runs code from it.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from offmap.files import replacing

_KEY = "offmap"
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
    metadata = {_KEY: json.dumps(_pack(value, "value", tensors))}
    with replacing(path) as fresh:
        save_file(tensors, fresh, metadata=metadata)


def read(path: str | os.PathLike[str]) -> Any:
    """Reads a value that ``write`` wrote.

    Raises:
        FileNotFoundError: There is no such file.
        TensorFileError: The file is damaged or was not written by Offmap.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {os.fspath(path)}")
    try:
        with safe_open(path, framework="pt") as stream:
            metadata = stream.metadata() or {}
            # Copies, because safetensors returns views of the file, which change when it is overwritten.
            tensors = {key: stream.get_tensor(key).clone() for key in stream.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError) as error:
        raise TensorFileError(f"{os.fspath(path)} is not a whole safetensors file: {error}") from None
    if _KEY not in metadata:
        raise TensorFileError(f"{os.fspath(path)} is a safetensors file, but not one that Offmap wrote")
    try:
        return _unpack(json.loads(metadata[_KEY]), tensors)
    except TensorFileError as error:
        raise TensorFileError(f"{os.fspath(path)} {error}") from None
    except Exception as error:  # damaged metadata can raise any error
        raise TensorFileError(f"{os.fspath(path)} has damaged metadata: {error!r}") from None


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
        return np.array(form["$strings"], dtype=form["dtype"]).reshape(form["shape"])
    if "$array" in form:
        return _unpack_tensor(form["$array"], form, tensors).numpy()
    return _unpack_tensor(form["$tensor"], form, tensors)


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
