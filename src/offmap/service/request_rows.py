"""The rows of a request, whichever way they were sent."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from fastapi import Request
from numpy.typing import NDArray
from pydantic_core import from_json

from offmap.collaborative.base import EntityDetector
from offmap.data import Data, TableEncoder
from offmap.data.roles import Roles
from offmap.data.table.cells import as_numbers
from offmap.estimator import encoder_of
from offmap.service.problems import Problem
from offmap.service.rows import numbers, reads_texts, rows_from_json
from offmap.service.settings import Limits
from offmap.service.uploads import MULTIPART, TYPES, media_type, read_upload, spooled
from offmap.workflow import Estimator

JSON = "application/json"
_ROWS = ("rows", "texts", "entities")
_COLUMNS = {
    "text": "send the texts as 'texts'",
    "label": "leave it out",
    "entity": "send the entities as 'entities'",
    "ids": "send the ids as 'ids'",
}
# A body above this size is parsed in a thread, so that other requests go on.
_SHORT = 1 << 20


@dataclass(frozen=True)
class RequestRows:
    """Rows as a model reads them, with what came along.

    Args:
        rows: The rows.
        entities: The entity of each row, for models that ask for it.
        identity: Columns of an uploaded table that tell its rows apart.
        more: Further entries of a JSON body.
    """

    rows: Any
    entities: NDArray[Any] | None = None
    identity: pd.DataFrame | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


async def read_rows(
    request: Request,
    model: Estimator,
    limits: Limits,
    *,
    more: Collection[str] = (),
    other_columns: Literal["refuse", "ignore"] = "refuse",
) -> RequestRows:
    """Reads the rows of a request: JSON, or an uploaded table, whose ids are a column where ``more`` has "ids".

    Args:
        request: The request.
        model: The model that is to read the rows.
        limits: How many rows there may be.
        more: Further entries that a JSON body may have.
        other_columns: What to do with columns of an uploaded table that the model was not fitted on.
    """
    kind = media_type(request)
    if kind in (JSON, ""):
        return rows_of(await json_object(request, more), model, limits)
    if kind not in TYPES and kind != MULTIPART:
        raise Problem(415, f"the body is {kind!r}; send one of {', '.join((JSON, MULTIPART, *TYPES))}")
    stated, ids = _stated(request, model), request.query_params.get("ids")
    if ids is not None:
        if "ids" not in more:
            raise Problem(422, "ids names a column of ids, which only observe takes; leave it out")
        # The reader gives a label the type that an id needs: an integer, or a text where a leading zero makes a code.
        stated = replace(stated, label=ids)
    async with spooled(request) as path:
        data = await asyncio.to_thread(_uploaded, path, model, stated, limits, ids is not None)
    if reads_texts(model) and data.kind != "text":
        raise Problem(422, "this model was fitted on texts; name the column that holds them with ?text=COLUMN")
    if data.kind == "text" and not reads_texts(model):
        raise Problem(422, "text names a column of texts, but this model was fitted on numbers; leave it out")
    if isinstance(model, EntityDetector) and data.y is None:
        raise Problem(422, "this model asks what is unusual for an entity; name the column of them with ?entity=COLUMN")
    entities = data.y if isinstance(model, EntityDetector) else None
    beside = {} if ids is None or data.y is None else {"ids": data.y.tolist()}
    return RequestRows(_table_rows(model, data, other_columns == "ignore"), entities, data.identity, beside)


def _require_no_columns(request: Request) -> None:
    """Refuses to ignore what an address says of the columns of a table where no table was sent."""
    if named := [name for name in _COLUMNS if name in request.query_params]:
        raise Problem(
            422, f"?{named[0]}= names a column of an uploaded table, but the body is JSON; {_COLUMNS[named[0]]}"
        )


def _uploaded(path: Path, model: Estimator, stated: Roles, limits: Limits, label_is_ids: bool) -> Data:
    try:
        return read_upload(path, model, stated, limits)
    except Problem as error:
        # The reader knows the column of ids as that of labels.
        if label_is_ids and str(error).startswith("label must be"):
            raise Problem(422, f"ids{str(error).removeprefix('label')}") from None
        raise


def _stated(request: Request, model: Estimator) -> Roles:
    """What a request says of the columns of its table, beyond what the model remembers."""
    text, label, entity = map(request.query_params.get, ("text", "label", "entity"))
    if entity is not None and not isinstance(model, EntityDetector):
        raise Problem(422, "entity names a column of entities, but this model knows none; leave it out")
    return Roles(text=text, label=label, entity=entity)


def _table_rows(model: Estimator, data: Data, more_columns: bool) -> Any:
    """The columns that the model was fitted on, in its order, whatever their order in the table."""
    if data.kind == "text":
        return data.X
    if isinstance(encoder_of(model), TableEncoder):
        return data.rows
    names = [str(name) for name in data.feature_names]
    known = [str(name) for name in getattr(model, "feature_names_in_", names)]
    if not set(known) <= set(names) or (len(names) > len(known) and not more_columns):
        raise Problem(422, f"the upload has the columns {', '.join(names)}; the model was fitted on {', '.join(known)}")
    return numbers(model, _cells(data, [names.index(name) for name in known]), known)


def _cells(data: Data, places: Sequence[int]) -> NDArray[Any]:
    """The cells of some columns of a table as numbers; one that is none is named."""
    if data.X.dtype != object or data.frame is None:
        return data.X[:, places]
    columns = [as_numbers(data.frame.iloc[:, place]) for place in places]
    for place, column in zip(places, columns, strict=True):
        if column.unreadable.any():
            row = int(column.unreadable.argmax())
            cell, name = data.frame.iloc[row, place], data.feature_names[place]
            raise Problem(422, f"row {row}, column {name!r} is {cell!r}, not a number")
    return np.column_stack([column.values for column in columns])


def rows_of(content: Mapping[str, Any], model: Estimator, limits: Limits) -> RequestRows:
    """The rows of a JSON body."""
    rows = rows_from_json(model, content, limits.rows)
    entities = content.get("entities")
    if entities is not None and (not isinstance(entities, list) or len(entities) != len(rows)):
        raise Problem(422, "entities must be a list with one entry per row")
    more = {name: value for name, value in content.items() if name not in _ROWS}
    return RequestRows(rows, None if entities is None else as_sent(entities), None, more)


def as_sent(values: list[Any]) -> NDArray[np.object_]:
    """A flat array of labels or ids, each of its own type: NumPy would make texts of all of ``[1, "a"]``."""
    return np.fromiter(values, dtype=object, count=len(values))


async def json_object(request: Request, more: Collection[str]) -> dict[str, Any]:
    """The body as a JSON object of rows, which may have the entries ``more`` beside them.

    Others are refused: ids that are called "id" would be lost without a word.
    """
    if (kind := media_type(request)) in (*TYPES, MULTIPART):
        raise Problem(415, f"the body is {kind!r}; this address takes {JSON}")
    _require_no_columns(request)
    body = await request.body()
    content = parse(body) if len(body) < _SHORT else await asyncio.to_thread(parse, body)
    known = (*_ROWS, *more)
    if others := [name for name in content if name not in known]:
        raise Problem(422, f"the body has {others[0]!r}, which is none of {', '.join(known)}")
    return content


def parse(body: bytes) -> dict[str, Any]:
    """A JSON object, or a ``Problem`` that says where it is broken."""
    if not body:
        raise Problem(422, "the body is empty; send a JSON object")
    try:
        # Numbers are read many times faster than by the standard library.
        content = from_json(body)
    except ValueError as error:
        raise Problem(422, f"the body is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise Problem(422, 'the body must be a JSON object, as {"rows": [[0.5, 1.5]]}')
    return content
