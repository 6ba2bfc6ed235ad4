"""Readers of array files: ``.npy``, ``.npz`` and the idx format of MNIST. Pickled objects are refused."""

import gzip
import zipfile
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from offmap.data.decoding import decoding
from offmap.data.limits import require_ratio
from offmap.data.rows import Data, as_texts
from offmap.errors import printable

__all__ = ["read_idx", "read_npy", "read_npz", "read_npz_keys"]

_ARCHIVE = "an .npz archive, as np.savez writes it"


def read_npy(path: Path) -> Data:
    """Reads the rows of an ``.npy`` file, which has no labels."""
    with decoding(path, "an .npy array, as np.save writes it"), path.open("rb") as file:
        rows = _array(file, path.stat().st_size)
    return Data(_rows(rows), name=str(path))


def read_npz(path: Path, split: str | None = None) -> Data:
    """Reads rows, and labels if there are any, from an ``.npz`` archive.

    With ``split`` the keys are ``x_<split>`` and ``y_<split>``. Without it they are ``X`` or ``x`` with ``y``; if there
    are none, the only ``x_…`` key with its ``y_…``; if there is none, the only key.

    Args:
        path: The archive.
        split: The split to read, if the archive holds several.
    """
    with decoding(path, _ARCHIVE), zipfile.ZipFile(path) as archive:
        keys = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    x_key = _rows_key(path, keys, split)
    y_key = _labels_key(x_key)
    rows, *labels = read_npz_keys(path, [key for key in (x_key, y_key) if key in keys])
    return Data(_rows(rows), labels[0] if labels else None, name=str(path))


def read_npz_keys(path: Path, keys: Sequence[str]) -> list[NDArray[Any]]:
    """Reads the named arrays of an archive, in the order of ``keys``."""
    with decoding(path, _ARCHIVE), zipfile.ZipFile(path) as archive:
        return [_member(archive, key) for key in keys]


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Reads a gzipped idx file of bytes.

    The format is: 0, 0, the type (8 for bytes), the number of dimensions, the length of each dimension, the values.
    """
    with decoding(path, "a gzipped idx file"):
        content = gzip.decompress(path.read_bytes())
        if content[:3] != b"\x00\x00\x08":
            raise ValueError("it does not start with the header of an idx file of bytes")
        n_dims = content[3]
        shape = np.frombuffer(content, dtype=">i4", count=n_dims, offset=4)
        return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * n_dims).reshape(shape)


def _member(archive: zipfile.ZipFile, key: str) -> NDArray[Any]:
    info = archive.getinfo(f"{key}.npy")
    require_ratio(info.compress_size, info.file_size)
    with archive.open(info) as file:
        return _array(file, info.file_size)


def _array(file: IO[bytes], size: int) -> NDArray[Any]:
    """Reads an array from a file of ``size`` bytes; memory is asked for only if the file can fill it."""
    _require_whole(file, size)
    try:
        return np.lib.format.read_array(file, allow_pickle=False)
    except ValueError as error:
        # NumPy takes any unknown format for a pickle, and its message says how to load one.
        raise ValueError("expected complete arrays of numbers or strings") from error


def _require_whole(file: IO[bytes], size: int) -> None:
    try:
        version = np.lib.format.read_magic(file)
        headers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = headers.get(version, np.lib.format.read_array_header_2_0)(file)
    except Exception as error:  # a damaged header raises errors of many kinds
        raise ValueError("expected complete arrays of numbers or strings") from error
    # An array of nothing may still say to have rows, each of which costs memory later.
    claimed = prod(shape) * dtype.itemsize if dtype.itemsize else max((*shape, 0))
    if min((*shape, 0)) < 0 or claimed > size or (claimed == 0 and max((*shape, 0)) > size):
        raise ValueError(f"expected complete arrays: {size:,} bytes claim to hold the shape {shape} of {dtype}")
    file.seek(0)


def _rows(array: NDArray[Any]) -> NDArray[Any]:
    return as_texts(array) if array.dtype.kind == "U" and array.ndim == 1 else array


def _rows_key(path: Path, keys: list[str], split: str | None) -> str:
    if split is not None:
        candidates = [key for key in (f"x_{split}", f"X_{split}") if key in keys]
    else:
        candidates = (
            [key for key in keys if key in ("X", "x")]
            or [key for key in keys if key.lower().startswith("x_")]
            or (keys if len(keys) == 1 else [])
        )
    if len(candidates) != 1:
        wanted = f"x_{split}" if split is not None else "one of X, x or x_<split> (name the split if there are several)"
        found = ", ".join(printable(key) for key in keys) or "none"
        raise ValueError(f"{path} must have the key {wanted}; its keys are {found}")
    return candidates[0]


def _labels_key(x_key: str) -> str:
    return "y" + x_key[1:] if x_key[0] in "xX" else ""
