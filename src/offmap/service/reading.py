"""``/v1/worlds``: what a reviewer reads of a world over HTTP."""

import re
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request

from offmap.loop import ActView, GroupView, OpenWorld, Status
from offmap.service import openapi, schemas
from offmap.service.problems import Problem
from offmap.service.worlds import WorldHandle

# Python reads no longer ones by default.
_NUMBER = re.compile(r"-?\d{1,4000}", re.ASCII)
router = APIRouter(prefix="/v1/worlds", tags=["Worlds"], responses=openapi.READ)


def handle_of(request: Request, name: str) -> WorldHandle:
    """The world of that name."""
    handle: WorldHandle = request.app.state.worlds.get(name)
    return handle


@router.get("")
async def list_worlds(request: Request) -> list[str]:
    """Lists the names of the worlds."""
    names: list[str] = request.app.state.worlds.names()
    return names


@router.get("/{world}")
async def status(request: Request, world: str) -> Status:
    """Shows counts, the promise that holds now, and what it needs."""
    return await handle_of(request, world).read(OpenWorld.status)


@router.get("/{world}/groups")
async def groups(
    request: Request,
    world: str,
    status: Annotated[list[schemas.Status] | None, Query()] = None,
    limit: Annotated[int | None, Query(ge=1)] = None,
) -> schemas.Groups:
    """Lists the groups that wait for a decision, the most worthwhile first; `?status=named` gives others."""

    def read(opened: OpenWorld) -> schemas.Groups:
        found = opened.groups(*(status or ()), limit=limit)
        return schemas.Groups(groups=[_group(view) for view in found], revision=opened.revision)

    return await handle_of(request, world).read(read)


@router.get("/{world}/rows")
async def rows(request: Request, world: str, id: Annotated[list[str], Query(max_length=1000)]) -> schemas.Rows:
    """Shows observed rows by their ids, with what the model said of them."""

    def read(opened: OpenWorld) -> schemas.Rows:
        ids = [_row_id(opened, each) for each in id]
        shown = [_row(opened, identity, row) for identity, row in zip(ids, opened.rows(ids), strict=True)]
        return schemas.Rows(rows=shown, revision=opened.revision)

    return await handle_of(request, world).read(read)


@router.get("/{world}/history")
async def history(request: Request, world: str, after: Annotated[int, Query(ge=0)] = 0) -> list[ActView]:
    """Lists decisions, undos and redos after a revision, in order."""
    return await handle_of(request, world).read(lambda opened: opened.acts(after))


def _group(view: GroupView) -> schemas.Group:
    return schemas.Group(**asdict(view), suggestions=list(view.suggestions))


def _row_id(opened: OpenWorld, text: str) -> int | str:
    """An id from an address; a number there may stand for a number."""
    known = opened.state.numbers
    if text in known:
        return text
    if _NUMBER.fullmatch(text) and int(text) in known:
        return int(text)
    raise Problem(404, f"no row with the id {text[:50]!r} was observed")


def _row(opened: OpenWorld, identity: int | str, row: Any) -> schemas.Row:
    known = asdict(opened.state.rows[opened.state.numbers[identity]])
    wanted = ("group", "label", "novel", "closest", "novelty", "p_value")
    return schemas.Row(id=identity, row=plain(row), **{name: known[name] for name in wanted})


def plain(row: Any) -> Any:
    """A row as JSON has it."""
    return np.asarray(row).tolist() if not isinstance(row, str) else str(row)
