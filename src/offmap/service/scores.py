"""``/v1/models``: score rows, suggest a false-alarm rate, say why rows are novel, and change the version in use."""

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar

import pandas as pd
from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, Response

from offmap.calibration import SuggestedRate
from offmap.cells import inert
from offmap.collaborative.base import EntityDetector
from offmap.explain import explain as explain_novelty
from offmap.loop.access import taught_rows
from offmap.service import openapi, schemas
from offmap.service.inference import json_verdict
from offmap.service.models import Loaded, Models, Slot
from offmap.service.problems import Problem, busy
from offmap.service.request_rows import RequestRows, json_object, read_rows, rows_of
from offmap.service.rows import named
from offmap.service.scorer import required
from offmap.workflow import promise_of
from offmap.workflow.entities import suggest_for_entities

router = APIRouter(prefix="/v1/models", tags=["Models"])
T = TypeVar("T")
# Rows of a world that others are compared with.
_COMPARED = 2_000
_BESIDE = ("reference", "reference_entities", "counterfactual")
_EXAMPLE = {"rows": [[5.1, 3.5, 1.4, 0.2]]}
Alpha = Annotated[
    float | None, Query(gt=0, lt=1, description="False-alarm rate; by default the one that the model was fitted with.")
]


@router.get("")
async def list_models(request: Request) -> list[schemas.ModelVersions]:
    """Lists the models."""
    return [_about(slot) for slot in request.app.state.models.slots()]


@router.get("/{name}", responses=openapi.UNKNOWN)
async def show_model(request: Request, name: str) -> schemas.ModelVersions:
    """Shows the versions of a model and the promise of the one in use."""
    return _about(request.app.state.models.slot(name))


@router.post("/{name}/score", openapi_extra=openapi.rows_body(_EXAMPLE), responses=openapi.SCORED)
@router.post("/{name}/versions/{version}/score", openapi_extra=openapi.rows_body(_EXAMPLE), responses=openapi.SCORED)
async def score(request: Request, name: str, version: str | None = None, alpha: Alpha = None) -> Response:
    """Scores rows, texts or an uploaded table.

    In a table, `?text=COLUMN` names the column of the texts and `?entity=COLUMN` that of the entities.
    """
    state = request.app.state
    loaded: Loaded = await state.models.get(name, version)
    given = await read_rows(request, loaded.model, state.settings.limits)
    verdict = await state.scorer.score(loaded, given.rows, given.entities, alpha)
    if "text/csv" not in request.headers.get("accept", ""):
        return json_verdict(verdict, model=loaded.name, version=loaded.version)
    frame = verdict.to_frame()
    beside = [] if given.identity is None else [given.identity.reset_index(drop=True).add_prefix("input_")]
    return Response(inert(pd.concat([*beside, frame], axis=1)).to_csv(index=False), media_type="text/csv")


@router.post("/{name}/suggest-alpha", openapi_extra=openapi.rows_body(_EXAMPLE), responses=openapi.BAD_ROWS)
async def suggest_alpha(request: Request, name: str) -> schemas.Suggestion:
    """Suggests a false-alarm rate for `score?alpha=…` by unlabelled rows as they come, a hundred or more.

    Rows are sent as for `score`.
    """
    state = request.app.state
    loaded: Loaded = await state.models.get(name)
    given = await read_rows(request, loaded.model, state.settings.limits)
    found = await _in_turn(state, partial(_suggested, loaded, given))
    return schemas.Suggestion(
        model=loaded.name,
        version=loaded.version,
        alpha=found.alpha,
        novel_share=found.novel_share,
        precision=None if math.isnan(found.precision) else found.precision,
        recall=None if math.isnan(found.recall) else found.recall,
        words=str(found),
    )


def _suggested(loaded: Loaded, given: RequestRows) -> SuggestedRate:
    rows = named(loaded.model, given.rows)
    if isinstance(loaded.model, EntityDetector):
        return suggest_for_entities(loaded.model, rows, required(given.entities))
    return loaded.model.suggest_alpha(rows)


@router.post(
    "/{name}/explain",
    openapi_extra=openapi.json_body(
        {
            "reference": {
                "type": "array",
                "items": {},
                "description": "Normal rows to compare with, as rows or texts.",
            },
            "reference_entities": {
                "type": "array",
                "items": {},
                "description": "The entity of each row to compare with, for models of entities.",
            },
            "counterfactual": {"type": "boolean", "default": False},
        },
        [],
    ),
    responses=openapi.BAD_ROWS,
)
async def explain(request: Request, name: str) -> JSONResponse:
    """Explains why each row is novel: which parts of it, compared with what, and what would make it normal.

    The model of a world compares with the rows that taught it. Other models need `reference`, unless they keep their
    training rows.
    """
    state = request.app.state
    loaded: Loaded = await state.models.get(name)
    limits = state.settings.limits
    given = rows_of(await json_object(request, _BESIDE), loaded.model, limits)
    if len(given.rows) > limits.explained_rows:
        raise Problem(413, f"{len(given.rows)} rows to explain are more than {limits.explained_rows}; send fewer")
    options: dict[str, Any] = {"counterfactual": bool(given.more.get("counterfactual", False))}
    options["reference"] = named(loaded.model, await _reference(state, loaded, given.more.get("reference")))
    if isinstance(loaded.model, EntityDetector):
        options |= {"entities": given.entities, "reference_entities": given.more.get("reference_entities")}
    found = await _in_turn(state, partial(explain_novelty, loaded.model, named(loaded.model, given.rows), **options))
    explanations = [each.to_dict() | {"words": str(each)} for each in found]
    return JSONResponse({"model": loaded.name, "version": loaded.version, "explanations": explanations})


async def _in_turn(state: Any, work: Callable[[], T]) -> T:
    """Works in a thread, for one request at a time: it would slow down the scores of everyone else."""
    seconds = state.settings.limits.answer_seconds
    try:
        await asyncio.wait_for(state.turn.acquire(), seconds)
    except TimeoutError:
        raise busy(f"others had rows explained or a rate suggested for {seconds:g} s; try again later") from None
    try:
        return await asyncio.to_thread(work)
    finally:
        state.turn.release()


async def _reference(state: Any, loaded: Loaded, given: Any) -> Any:
    if given is not None:
        texts = isinstance(given, list) and bool(given) and isinstance(given[0], str)
        return rows_of({"texts" if texts else "rows": given}, loaded.model, state.settings.limits).rows
    if loaded.name in state.worlds.names():
        return await state.worlds.get(loaded.name).read(partial(taught_rows, limit=_COMPARED))
    return None


@router.post("/{name}/use", responses=openapi.SWITCHED)
async def use(request: Request, name: str, wanted: schemas.UseVersion) -> schemas.ModelVersions:
    """Puts a version into use: it is loaded first and swapped in at once, so that no request fails or waits."""
    return await _switched(request, name, wanted.version)


@router.post("/{name}/rollback", responses=openapi.SWITCHED)
async def rollback(request: Request, name: str) -> schemas.ModelVersions:
    """Returns to the version that was in use before."""
    return await _switched(request, name, None)


async def _switched(request: Request, name: str, version: str | None) -> schemas.ModelVersions:
    models: Models = request.app.state.models
    before = models.slot(name).current
    after = await (models.rollback(name) if version is None else models.use(name, version))
    request.app.state.metrics.used(after, before)
    return _about(models.slot(name))


def _about(slot: Slot) -> schemas.ModelVersions:
    current = slot.current
    return schemas.ModelVersions(
        name=slot.name,
        version=None if current is None else current.version,
        versions=list(slot.find()),
        method=None if current is None else current.method,
        promise=None if current is None else promise_of(current.model),
    )
