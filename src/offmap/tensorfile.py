"""Nested Python values with tensors inside, in one safetensors file.

Tensors and numeric arrays become tensors of the file; everything around them becomes JSON in its metadata, with a
tag where JSON has no word for the type. Reading builds plain values only: no code in a file is ever run.
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
    """A file that cannot be read as what it should be; the message says why."""


def write(path: str | os.PathLike[str], value: Any) -> None:
    """Writes ``value`` (dicts, lists, tuples, plain values, arrays, tensors) to ``path``, whole or not at all."""
    tensors: dict[str, Tensor] = {}
    metadata = {_KEY: json.dumps(_pack(value, "value", tensors))}
    with replacing(path) as fresh:
        save_file(tensors, fresh, metadata=metadata)


def read(path: str | os.PathLike[str]) -> Any:
    """Reads what ``write`` wrote, or raises a ``TensorFileError`` that says what is wrong with the file."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {os.fspath(path)}")
    try:
        with safe_open(path, framework="pt") as stream:
            metadata = stream.metadata() or {}
            # Copies: what safetensors returns is a view of the file, and would change with it.
            tensors = {key: stream.get_tensor(key).clone() for key in stream.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError) as error:
        raise TensorFileError(f"{os.fspath(path)} is not a whole safetensors file: {error}") from None
    if _KEY not in metadata:
        raise TensorFileError(f"{os.fspath(path)} is a safetensors file, but not one that Offmap wrote")
    try:
        return _unpack(json.loads(metadata[_KEY]), tensors)
    except TensorFileError as error:
        raise TensorFileError(f"{os.fspath(path)} {error}") from None
    except Exception as error:  # damaged metadata may fail anywhere, and only in reading
        raise TensorFileError(f"{os.fspath(path)} has damaged metadata: {error!r}") from None


def _pack(value: Any, key: str, tensors: dict[str, Tensor]) -> Any:
    """The JSON form of ``value``; tensors met on the way go into ``tensors`` under the path that led to them."""
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
    while key in tensors:  # the paths of {"a": {"b": …}} and {"a.b": …} are one
        key += "'"
    # A copy of its own: safetensors refuses tensors that share memory.
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
            f"but it should be {form['dtype']} of shape {form['shape']}"
        )
    return found
