"""``/v1/worlds/{world}/teach`` and ``/observe``: rows that a world learns from or assesses."""

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from offmap.loop import OpenWorld
from offmap.service import openapi, schemas
from offmap.service.inference import json_verdict
from offmap.service.models import Loaded
from offmap.service.problems import Problem
from offmap.service.request_rows import RequestRows, as_sent, json_object, read_rows, rows_of
from offmap.service.rows import first_rows
from offmap.service.worlds import WorldHandle
from offmap.verdict import Verdict

router = APIRouter(prefix="/v1/worlds", tags=["Worlds"])
_IDS = {"ids": {"type": "array", "items": {}, "description": "Your id of each row, a number or a text."}}
_LABELS = {
    "labels": {"type": "array", "items": {}, "description": "The class of each row."},
    "revision": {"type": "integer", "description": "What GET of the world gave; left out to teach anyway."},
}


@router.post(
    "/{world}/observe",
    openapi_extra=openapi.rows_body({"rows": [[5.1, 3.5, 1.4, 0.2]], "ids": ["a-1"]}, **_IDS),
    responses=openapi.BAD_ROWS,
)
async def observe(request: Request, world: str) -> Response:
    """Assesses rows of the stream; unusual ones wait to be grouped. What is answered with 200 is on disk.

    In a table, `?text=COLUMN` names the column of the texts and `?ids=COLUMN` that of your ids.
    """
    state = request.app.state
    handle: WorldHandle = state.worlds.get(world)
    loaded: Loaded = await state.models.get(world)
    # A table of the stream may still have columns that were dropped when the world was created.
    limits = state.settings.limits
    given: RequestRows = await read_rows(request, loaded.model, limits, more=["ids"], other_columns="ignore")
    ids = given.more.get("ids")
    if ids is not None and not isinstance(ids, list):
        raise Problem(422, "ids must be a list with one entry per row")

    def act(opened: OpenWorld) -> tuple[Verdict, int, int | None, float]:
        start = perf_counter()
        verdict = opened.observe(given.rows, ids=ids)
        return verdict, opened.revision, opened.state.version, perf_counter() - start

    verdict, revision, version, seconds = await handle.act(act)
    # Another version may have been learnt while the rows waited for their turn.
    state.metrics.scored(await state.models.get(world), verdict, seconds)
    return json_verdict(verdict, revision=revision, version=str(version))


@router.post("/{world}/teach", openapi_extra=openapi.json_body(_LABELS, ["labels"]), responses=openapi.BAD_ROWS)
async def teach(request: Request, world: str) -> schemas.Version:
    """Learns labelled rows that are a random sample of their classes, and sets the threshold by held-out ones."""
    state = request.app.state
    handle: WorldHandle = state.worlds.get(world)
    content = await json_object(request, ["labels", "revision"])
    rows, labels = _lesson(state, world, content), content.get("labels")
    if not isinstance(labels, list) or len(labels) != len(rows):
        raise Problem(422, "labels must be a list with one class per row")
    if (flag := next((label for label in labels if isinstance(label, bool)), None)) is not None:
        raise Problem(422, f"labels must be integers or texts; got {'true' if flag else 'false'}")

    def act(opened: OpenWorld) -> tuple[int, int]:
        return opened.teach(rows, as_sent(labels), expected=content.get("revision")), opened.revision

    version, revision = await handle.act(act)
    return schemas.Version(version=version, revision=revision)


def _lesson(state: Any, world: str, content: Mapping[str, Any]) -> Any:
    current = state.models.slot(world).current
    limits = state.settings.limits
    return first_rows(content, limits.rows) if current is None else rows_of(content, current.model, limits).rows
