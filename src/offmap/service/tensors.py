"""Tensors of the Open Inference Protocol, as JSON or as bytes behind it (the extension ``binary_tensor_data``)."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from offmap.errors import short_repr
from offmap.service.problems import Problem

EXTENSION = "binary_tensor_data"
LENGTH_HEADER = "inference-header-content-length"
_TYPES = {
    "BOOL": "?",
    **{f"UINT{8 * size}": f"<u{size}" for size in (1, 2, 4, 8)},
    **{f"INT{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)},
    **{f"FP{8 * size}": f"<f{size}" for size in (2, 4, 8)},
}


def datatype_of(values: NDArray[Any]) -> str:
    """What the protocol calls the type of an array.

    Example:
        >>> datatype_of(np.zeros(2)), datatype_of(np.array(["a"]))
        ('FP64', 'BYTES')
    """
    kind, size = values.dtype.kind, 8 * values.dtype.itemsize
    return {"b": "BOOL", "i": f"INT{size}", "u": f"UINT{size}", "f": f"FP{size}"}.get(kind, "BYTES")


def read_tensors(content: Mapping[str, Any], rest: bytes) -> dict[str, NDArray[Any]]:
    """The inputs of a request by name; those that state ``binary_data_size`` are taken from ``rest``, in order."""
    inputs = content.get("inputs")
    if not isinstance(inputs, list) or not inputs or not all(isinstance(each, dict) for each in inputs):
        raise Problem(422, "inputs must be a list of tensors, each with name, shape, datatype and data")
    found, at = {}, 0
    for each in inputs:
        name, shape, datatype = _described(each)
        if name in found:
            raise Problem(422, f"two inputs have the name {name!r}; give each a name of its own")
        size = parameters_of(each, f"the input {name!r}").get("binary_data_size")
        if size is None:
            found[name] = _from_json(name, shape, datatype, each.get("data"))
        else:
            if type(size) is not int or not 0 <= size <= len(rest) - at:
                raise Problem(422, f"binary_data_size of {name!r} is {size!r}, but {len(rest) - at} bytes are left")
            found[name] = _from_bytes(name, shape, datatype, rest[at : at + size])
            at += size
    if at != len(rest):
        raise Problem(422, f"{len(rest) - at} bytes of the body belong to no input; state their binary_data_size")
    return found


def parameters_of(part: Mapping[str, Any], owner: str) -> Mapping[str, Any]:
    """The parameters of a request, or of an input or an output of it; none if they are left out."""
    found = part.get("parameters")
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Problem(422, f"parameters of {owner} must be an object; got {short_repr(found)}")
    return found


def _described(tensor: Mapping[str, Any]) -> tuple[str, tuple[int, ...], str]:
    name, shape, datatype = tensor.get("name"), tensor.get("shape"), tensor.get("datatype")
    if not isinstance(name, str):
        raise Problem(422, "every input must have a name")
    if not isinstance(shape, list) or not shape or not all(type(n) is int and n >= 0 for n in shape):
        raise Problem(422, f"the shape of {name!r} must be a list of whole numbers")
    if not isinstance(datatype, str) or datatype not in ("BYTES", *_TYPES):
        known, given = ", ".join(_TYPES), short_repr(datatype)
        raise Problem(422, f"the datatype of {name!r} must be BYTES or one of {known}; got {given}")
    return name, tuple(shape), datatype


def _from_json(name: str, shape: tuple[int, ...], datatype: str, data: Any) -> NDArray[Any]:
    if not isinstance(data, list):
        raise Problem(422, f"data of {name!r} must be a list")
    if datatype == "BYTES":
        values = np.array(data, dtype=object)
        if not all(isinstance(text, str) for text in values.flat):
            raise Problem(422, f"data of {name!r} must be a list of texts")
    else:
        values = _as_numbers(name, datatype, data)
    return _shaped(name, values, shape)


def _as_numbers(name: str, datatype: str, data: list[Any]) -> NDArray[Any]:
    """Numbers of a type that holds them: NumPy would cut 5.9 down to an integer 5, and take "5" for a number."""
    try:
        given = np.array(data)
        with np.errstate(invalid="ignore", over="ignore"):
            values = given.astype(_TYPES[datatype])
    except (ValueError, TypeError, OverflowError):
        raise Problem(422, f"data of {name!r} cannot be read as {datatype}") from None
    rounded = not datatype.startswith("FP") and not np.array_equal(values, given)
    if given.dtype.kind not in "biufO" or rounded:
        raise Problem(422, f"data of {name!r} cannot be read as {datatype}")
    return values


def _from_bytes(name: str, shape: tuple[int, ...], datatype: str, content: bytes) -> NDArray[Any]:
    if datatype == "BYTES":
        return _shaped(name, np.array(list(_texts(name, content)), dtype=object), shape)
    kind = np.dtype(_TYPES[datatype])
    if len(content) != prod(shape) * kind.itemsize:
        raise Problem(
            422, f"{name!r} has {len(content)} bytes; its shape and datatype need {prod(shape) * kind.itemsize}"
        )
    return np.frombuffer(content, dtype=kind).reshape(shape)


def _texts(name: str, content: bytes) -> Iterator[str]:
    """Each text is preceded by its length in bytes, four bytes with the lowest first."""
    at = 0
    while at < len(content):
        size = int.from_bytes(content[at : at + 4], "little")
        if at + 4 + size > len(content):
            raise Problem(422, f"{name!r} ends within a text; each is preceded by its length in four bytes")
        try:
            yield content[at + 4 : at + 4 + size].decode()
        except UnicodeDecodeError:
            raise Problem(422, f"a text of {name!r} is not UTF-8") from None
        at += 4 + size


def _shaped(name: str, values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if values.size != prod(shape):
        raise Problem(422, f"{name!r} has {values.size} values; its shape needs {prod(shape)}")
    return values.reshape(shape)


def split_body(body: bytes, length: str | None) -> tuple[bytes, bytes]:
    """The JSON of a body and the bytes behind it, as the header says."""
    if length is None:
        return body, b""
    if not length.isdecimal() or int(length) > len(body):
        raise Problem(422, f"Inference-Header-Content-Length must be from 0 to {len(body)}, the length of the body")
    return body[: int(length)], body[int(length) :]


def write_tensors(
    content: dict[str, Any], outputs: Mapping[str, NDArray[Any]], binary: Sequence[str]
) -> tuple[bytes, int | None]:
    """The body of an answer, and the length of its JSON if bytes follow."""
    tensors: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for name, values in outputs.items():
        tensor: dict[str, Any] = {"name": name, "shape": list(values.shape), "datatype": datatype_of(values)}
        if name in binary:
            parts.append(_as_bytes(values))
            tensors.append(tensor | {"parameters": {"binary_data_size": len(parts[-1])}})
        else:
            tensors.append(tensor | {"data": plain(values)})
    header = to_json(content | {"outputs": tensors})
    return (header, None) if not parts else (b"".join([header, *parts]), len(header))


def _as_bytes(values: NDArray[Any]) -> bytes:
    if datatype_of(values) == "BYTES":
        texts = [str(value).encode() for value in values]
        return b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def plain(values: NDArray[Any]) -> list[Any]:
    """Values as JSON has them; numbers that are not finite become null.

    Example:
        >>> plain(np.array([0.5, np.inf]))
        [0.5, None]
    """
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        return [value if np.isfinite(value) else None for value in values.tolist()]
    return list(values.tolist())
