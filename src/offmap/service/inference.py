"""The Open Inference Protocol (KServe V2): health, metadata of models, and inference with tensors in and out."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from numpy.typing import NDArray
from pydantic_core import to_json
from starlette.responses import Response

from offmap import __version__
from offmap.base import OpenSetClassifier
from offmap.collaborative.base import EntityDetector
from offmap.data import TableEncoder
from offmap.errors import short_repr
from offmap.estimator import encoder_of
from offmap.service import openapi, schemas, tensors
from offmap.service.models import Loaded, Models
from offmap.service.problems import Problem
from offmap.service.request_rows import parse
from offmap.service.rows import cells, numbers, reads_texts, require_few, texts
from offmap.verdict import Verdict
from offmap.workflow import Estimator

router = APIRouter(prefix="/v2", tags=["Open Inference Protocol"])
_ROWS, _ENTITIES = "rows", "entities"


@router.get("/health/live")
async def live() -> schemas.Live:
    """Says that the process runs."""
    return schemas.Live(live=True)


@router.get("/health/ready", responses=openapi.LOADING)
async def ready(request: Request) -> schemas.Ready:
    """Says that every model and world is loaded; 503 before."""
    if not request.app.state.ready:
        raise Problem(503, "models are being loaded", {"Retry-After": "1"})
    return schemas.Ready(ready=True)


@router.get("")
async def server() -> schemas.Server:
    """Says what this server is."""
    return schemas.Server(name="offmap", version=__version__, extensions=[tensors.EXTENSION])


@router.get("/models/{name}", responses=openapi.UNKNOWN)
@router.get("/models/{name}/versions/{version}", responses=openapi.UNKNOWN)
async def metadata(request: Request, name: str, version: str | None = None) -> schemas.ModelMetadata:
    """Says which tensors a model reads and writes."""
    models: Models = request.app.state.models
    loaded = await models.get(name, version)
    return schemas.ModelMetadata(
        name=name,
        versions=list(models.slot(name).find()),
        platform=f"offmap_{loaded.method}",
        inputs=_inputs(loaded),
        outputs=_outputs(loaded),
    )


@router.get("/models/{name}/ready", responses=openapi.UNKNOWN)
@router.get("/models/{name}/versions/{version}/ready", responses=openapi.UNKNOWN)
async def model_ready(request: Request, name: str, version: str | None = None) -> schemas.ModelReady:
    """Says that a version of a model can be used; it is loaded if it was not."""
    loaded = await request.app.state.models.get(name, version)
    return schemas.ModelReady(name=name, version=loaded.version, ready=True)


@router.post("/models/{name}/infer", openapi_extra=openapi.INFER, responses=openapi.INFERRED)
@router.post("/models/{name}/versions/{version}/infer", openapi_extra=openapi.INFER, responses=openapi.INFERRED)
async def infer(request: Request, name: str, version: str | None = None) -> Response:
    """Scores the rows of a tensor: novelty, p_value, novel, and from a classifier the label."""
    state = request.app.state
    loaded: Loaded = await state.models.get(name, version)
    header, rest = tensors.split_body(await request.body(), request.headers.get(tensors.LENGTH_HEADER))
    content = parse(header)
    _require_id(content)
    rows, entities = _given(loaded, tensors.read_tensors(content, rest), state.settings.limits.rows)
    verdict: Verdict = await state.scorer.score(loaded, rows, entities)
    return _answer(content, loaded, verdict)


def _require_id(content: dict[str, Any]) -> None:
    if "id" in content and not isinstance(content["id"], str):
        raise Problem(422, f"id must be a text; got {short_repr(content['id'])}")


def _given(loaded: Loaded, inputs: dict[str, NDArray[Any]], most: int) -> tuple[Any, NDArray[Any] | None]:
    """The rows are the input called ``rows``, or the only one besides ``entities``."""
    entities = inputs.pop(_ENTITIES, None)
    if entities is not None and not isinstance(loaded.model, EntityDetector):
        raise Problem(422, f"{_ENTITIES!r} is for models of entities, and this model knows none; leave it out")
    rows = inputs.pop(_ROWS, None) if _ROWS in inputs or len(inputs) != 1 else inputs.popitem()[1]
    if rows is None or inputs:
        raise Problem(422, f"inputs must be one tensor {_ROWS!r}, and {_ENTITIES!r} for models of entities")
    if len(rows) == 0:
        raise Problem(422, "the rows are empty; send at least one")
    require_few(len(rows), most)
    if isinstance(encoder := encoder_of(loaded.model), TableEncoder):
        return cells(encoder, rows.tolist()), entities
    if rows.dtype == object:
        if reads_texts(loaded.model) and rows.size != len(rows):
            raise Problem(422, f"rows has {rows.size} texts in {len(rows)} rows; send one text per row")
        return texts(loaded.model, rows.ravel().tolist()), entities
    if reads_texts(loaded.model):
        raise Problem(422, "rows holds numbers, but this model was fitted on texts; send the datatype BYTES")
    return numbers(loaded.model, rows.astype(np.float32) if rows.dtype == np.float16 else rows), entities


def _answer(content: dict[str, Any], loaded: Loaded, verdict: Verdict) -> Response:
    found = outputs_of(verdict)
    asked = _asked(content, list(found))
    binary = [name for name, as_bytes in asked.items() if as_bytes]
    about = {"model_name": loaded.name, "model_version": loaded.version}
    about |= {"id": content["id"]} if "id" in content else {}
    body, length = tensors.write_tensors(about, {name: found[name] for name in asked}, binary)
    if length is None:
        return Response(body, media_type="application/json")
    headers = {tensors.LENGTH_HEADER: str(length)}
    return Response(body, media_type="application/octet-stream", headers=headers)


def _asked(content: dict[str, Any], known: list[str]) -> dict[str, bool]:
    """The outputs that a request asks for, each with whether it wants bytes; by default all of them."""
    default = _flag(tensors.parameters_of(content, "the request"), "binary_data_output", False)
    outputs = content.get("outputs") or [{"name": name} for name in known]
    if not isinstance(outputs, list) or not all(isinstance(each, dict) for each in outputs):
        raise Problem(422, "outputs must be a list of objects, each with a name")
    for each in outputs:
        if each.get("name") not in known:
            raise Problem(422, f"there is no output {short_repr(each.get('name'))}; outputs: {', '.join(known)}")
    options = {each["name"]: tensors.parameters_of(each, f"the output {each['name']!r}") for each in outputs}
    return {name: _flag(given, "binary_data", default) for name, given in options.items()}


def _flag(parameters: Mapping[str, Any], name: str, default: bool) -> bool:
    value = parameters.get(name, default)
    if not isinstance(value, bool):
        raise Problem(422, f"{name} must be true or false; got {short_repr(value)}")
    return value


def outputs_of(verdict: Verdict) -> dict[str, NDArray[Any]]:
    """What a verdict holds, by the names of the outputs."""
    columns = {
        "novelty": verdict.novelty,
        "p_value": verdict.p_value,
        "novel": verdict.novel,
        "label": verdict.label,
        "closest": verdict.closest,
    }
    return {name: values for name, values in columns.items() if values is not None}


def _inputs(loaded: Loaded) -> list[schemas.TensorMetadata]:
    model = loaded.model
    found = [schemas.TensorMetadata(name=_ROWS, datatype=_rows_type(model), shape=[-1, *_row_shape(model)])]
    if isinstance(model, EntityDetector):
        kind = tensors.datatype_of(model.entity_ids_)
        found.append(schemas.TensorMetadata(name=_ENTITIES, datatype=kind, shape=[-1]))
    return found


def _rows_type(model: Estimator) -> str:
    """Cells of a table are texts, as in a CSV file; an encoder of tables reads numbers just as well."""
    return "BYTES" if reads_texts(model) or isinstance(encoder_of(model), TableEncoder) else "FP64"


def _row_shape(model: Estimator) -> list[int]:
    if reads_texts(model):
        return []
    if isinstance(encoder := encoder_of(model), TableEncoder):
        return [len(encoder.feature_names_in_)]
    return [-1] if encoder is not None else list(model.input_shape_)


def _outputs(loaded: Loaded) -> list[schemas.TensorMetadata]:
    kinds = {"novelty": "FP64", "p_value": "FP64", "novel": "BOOL"}
    if not len(loaded.model.calibration_novelty_):
        del kinds["p_value"]
    if isinstance(loaded.model, OpenSetClassifier):
        kind = tensors.datatype_of(loaded.model.classes_)
        kinds |= {"label": kind, "closest": kind}
    return [schemas.TensorMetadata(name=name, datatype=kind, shape=[-1]) for name, kind in kinds.items()]


def json_verdict(verdict: Verdict, **about: Any) -> Response:
    """A verdict as one list per output, after what it is about."""
    columns = {name: tensors.plain(values) for name, values in outputs_of(verdict).items()}
    return Response(to_json(about | columns), media_type="application/json")
