"""Descriptions of bodies that are parsed by hand, for speed, and of refusals, for the OpenAPI document."""

from typing import Any

from offmap.service.schemas import Refusal
from offmap.service.uploads import MULTIPART, TYPES


def refusals(**statuses: str) -> dict[int | str, dict[str, Any]]:
    """Answers besides the good one, as ``_404="there is no such model"``."""
    return {int(status[1:]): {"model": Refusal, "description": text} for status, text in statuses.items()}


_COMMON = {"_401": "No token.", "_429": "Too many requests, or the queue is full; see Retry-After."}
UNKNOWN = refusals(_404="There is no such model or version.", _422="The request is not as described.", **_COMMON)
SWITCHED = UNKNOWN | refusals(_409="There is no version to return to, or a world makes its versions itself.")
READ = refusals(_404="There is no such world or row.", _422="The request is not as described.", **_COMMON)
LOADING = refusals(_503="Models are being loaded.")
BAD_ROWS = refusals(
    _404="There is no such model, version or world.",
    _408="The body took too long to arrive.",
    _413="Too many bytes or rows.",
    _415="The body is of another type.",
    _422="Rows that cannot be scored: which row, which column.",
    _503="The service is loading or stopping.",
    **_COMMON,
)
STALE = refusals(
    _404="There is no such world.",
    _409="What the act is about has changed since the revision; ``changes`` says how. Nothing was done.",
    _422="The act is not possible; the sentence says why.",
    **_COMMON,
)


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


_ROWS: dict[str, Any] = {
    "rows": {
        "type": "array",
        "items": {},
        "description": "A list of numbers per row, an image, or an object of columns.",
    },
    "texts": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Texts, for a model that was fitted on texts.",
    },
    "entities": {"type": "array", "items": {}, "description": "The entity of each row, for models of entities."},
}
_BINARY = {"schema": {"type": "string", "format": "binary"}}


def rows_body(example: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A body with rows, and the tables that may be sent in its place."""
    form = {"schema": _object({"file": {"type": "string", "format": "binary"}}, ["file"])}
    content = {"application/json": {"schema": _object({**_ROWS, **more}, []), "example": example}}
    tables = {kind: _BINARY for kind in TYPES}
    return {"requestBody": {"required": True, "content": {**content, MULTIPART: form, **tables}}}


def json_body(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """A body that is a JSON object with rows."""
    schema = _object({**_ROWS, **properties}, required)
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


_TENSOR = _object(
    {
        "name": {"type": "string"},
        "shape": {"type": "array", "items": {"type": "integer"}},
        "datatype": {"type": "string"},
        "data": {"type": "array", "items": {}},
        "parameters": {"type": "object"},
    },
    ["name", "shape", "datatype"],
)
_INFER = _object(
    {
        "id": {"type": "string"},
        "inputs": {"type": "array", "items": _TENSOR},
        "outputs": {"type": "array", "items": _object({"name": {"type": "string"}}, ["name"])},
        "parameters": {"type": "object"},
    },
    ["inputs"],
)
INFER = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": _INFER}, "application/octet-stream": _BINARY},
    }
}
_INFERRED = _object(
    {
        "model_name": {"type": "string"},
        "model_version": {"type": "string"},
        "id": {"type": "string"},
        "outputs": {"type": "array", "items": _TENSOR},
    },
    ["model_name", "model_version", "outputs"],
)
INFERRED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One value per row in each output.",
        "content": {"application/json": {"schema": _INFERRED}, "application/octet-stream": _BINARY},
    },
    **BAD_ROWS,
}
_LIST: dict[str, Any] = {"type": "array", "items": {}}
_VERDICT = _object(
    {
        "model": {"type": "string"},
        "version": {"type": "string"},
        **{name: _LIST for name in ("novelty", "p_value", "novel", "label", "closest")},
    },
    ["model", "version", "novelty", "novel"],
)
SCORED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One list per output, with one value per row; CSV for a client that accepts it.",
        "content": {"application/json": {"schema": _VERDICT}, "text/csv": {"schema": {"type": "string"}}},
    },
    **BAD_ROWS,
}
