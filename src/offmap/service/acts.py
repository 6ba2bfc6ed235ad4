"""``/v1/worlds``: every act of the open-world loop over HTTP. What is answered with 200 is on disk."""

from collections.abc import Callable
from typing import TypeVar

from fastapi import APIRouter, Request

from offmap.loop import OpenWorld
from offmap.service import openapi, schemas
from offmap.service.reading import handle_of, plain

router = APIRouter(prefix="/v1/worlds", tags=["Worlds"], responses=openapi.STALE)
T = TypeVar("T")


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
