"""``/v1/worlds``: every act of the open-world loop over HTTP. What is answered with 200 is on disk."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, TypeVar

import numpy as np
from fastapi import APIRouter, Query, Request

from offmap.loop import GroupView, OpenWorld
from offmap.service import openapi, schemas
from offmap.service.problems import Problem
from offmap.service.worlds import WorldHandle

router = APIRouter(prefix="/v1/worlds", tags=["Worlds"], responses=openapi.STALE)
T = TypeVar("T")


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
async def status(request: Request, world: str) -> schemas.WorldStatus:
    """Shows counts, the promise that holds now, and what it needs."""

    def read(opened: OpenWorld) -> dict[str, Any]:
        found = opened.status()
        measured = None if found.measured is None else list(found.measured)
        return asdict(found) | {"measured": measured}

    return schemas.WorldStatus(**await handle_of(request, world).read(read))


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
async def history(request: Request, world: str, after: Annotated[int, Query(ge=0)] = 0) -> list[schemas.Entry]:
    """Lists decisions, undos and redos after a revision, in order."""
    found = await handle_of(request, world).read(lambda opened: opened.acts(after))
    return [schemas.Entry(**asdict(each)) for each in found]


@router.post("/{world}/name")
async def name(request: Request, world: str, act: schemas.Name) -> schemas.Done:
    """Says which class a group is; `learn` teaches it to the model."""
    return await _done(request, world, lambda opened: opened.name(act.group, act.label, expected=act.revision))


@router.post("/{world}/merge")
async def merge(request: Request, world: str, act: schemas.Merge) -> schemas.Done:
    """Moves all rows of `other` into `group`."""
    return await _done(request, world, lambda opened: opened.merge(act.group, act.other, expected=act.revision))


@router.post("/{world}/split")
async def split(request: Request, world: str, act: schemas.GroupAct) -> schemas.Split:
    """Makes two groups of one, where its rows are furthest apart."""
    found, revision = await _acted(request, world, lambda opened: opened.split(act.group, expected=act.revision))
    return schemas.Split(groups=found, revision=revision)


@router.post("/{world}/move")
async def move(request: Request, world: str, act: schemas.Move) -> schemas.Done:
    """Moves one row into a group."""
    return await _done(request, world, lambda opened: opened.move(act.row, act.group, expected=act.revision))


@router.post("/{world}/discard")
async def discard(request: Request, world: str, act: schemas.GroupAct) -> schemas.Done:
    """Takes a group out of the queue; `name`, `skip` or `undo` bring it back."""
    return await _done(request, world, lambda opened: opened.discard(act.group, expected=act.revision))


@router.post("/{world}/skip")
async def skip(request: Request, world: str, act: schemas.GroupAct) -> schemas.Done:
    """Puts a group at the end of the queue."""
    return await _done(request, world, lambda opened: opened.skip(act.group, expected=act.revision))


@router.post("/{world}/audit")
async def audit(request: Request, world: str, act: schemas.Audit) -> schemas.Audited:
    """Draws random rows of the stream to label, so that the false-alarm rate can be kept and measured."""
    found, revision = await _acted(request, world, lambda opened: opened.audit(act.n))
    shown = [schemas.AuditRow(id=row.id, row=plain(row.row)) for row in found]
    return schemas.Audited(rows=shown, revision=revision)


@router.post("/{world}/label")
async def label(request: Request, world: str, act: schemas.LabelRow) -> schemas.Done:
    """Says which class one row is of."""
    return await _done(request, world, lambda opened: opened.label(act.row, act.label, expected=act.revision))


@router.post("/{world}/learn")
async def learn(request: Request, world: str, act: schemas.Act) -> schemas.Version:
    """Teaches what was named and labelled to the model, and sets its threshold anew."""
    version, revision = await _acted(request, world, lambda opened: opened.learn(expected=act.revision))
    return schemas.Version(version=version, revision=revision)


@router.post("/{world}/undo")
async def undo(request: Request, world: str, act: schemas.Act) -> schemas.Undone:
    """Takes the last decision back."""
    kind, revision = await _acted(request, world, lambda opened: opened.undo(expected=act.revision))
    return schemas.Undone(kind=kind, revision=revision)


@router.post("/{world}/redo")
async def redo(request: Request, world: str, act: schemas.Act) -> schemas.Undone:
    """Makes the decision again that was undone last."""
    kind, revision = await _acted(request, world, lambda opened: opened.redo(expected=act.revision))
    return schemas.Undone(kind=kind, revision=revision)


@router.post("/{world}/rollback")
async def rollback(request: Request, world: str, act: schemas.Rollback) -> schemas.Done:
    """Returns to an earlier version of the model; groups learnt since wait for `learn` again."""
    return await _done(request, world, lambda opened: opened.rollback(act.version, expected=act.revision))


async def _acted(request: Request, world: str, function: Callable[[OpenWorld], T]) -> tuple[T, int]:
    """What an act returned, and the revision that it made."""
    return await handle_of(request, world).act(lambda opened: (function(opened), opened.revision))


async def _done(request: Request, world: str, function: Callable[[OpenWorld], object]) -> schemas.Done:
    _, revision = await _acted(request, world, function)
    return schemas.Done(revision=revision)


def _group(view: GroupView) -> schemas.Group:
    return schemas.Group(**asdict(view), suggestions=list(view.suggestions))


def _row_id(opened: OpenWorld, text: str) -> int | str:
    """An id from an address; a number there may stand for a number."""
    known = opened.state.numbers
    if text not in known and text.lstrip("-").isdecimal() and int(text) in known:
        return int(text)
    if text not in known:
        raise Problem(404, f"no row with the id {text!r} was observed")
    return text


def _row(opened: OpenWorld, identity: int | str, row: Any) -> schemas.Row:
    known = asdict(opened.state.rows[opened.state.numbers[identity]])
    wanted = ("group", "label", "novel", "closest", "novelty", "p_value")
    return schemas.Row(id=identity, row=plain(row), **{name: known[name] for name in wanted})


def plain(row: Any) -> Any:
    """A row as JSON has it."""
    return np.asarray(row).tolist() if not isinstance(row, str) else str(row)
