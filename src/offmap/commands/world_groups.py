"""``offmap world``: what a person decides about groups and rows, one decision per command."""

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from offmap.commands import terminal
from offmap.commands.options import Json, Quiet
from offmap.commands.world_examples import examples, plain_row, shown_row
from offmap.commands.world_options import (
    WAIT,
    Expected,
    ExpectedOfAll,
    Group,
    Store,
    Wait,
    World,
    as_label,
    as_row,
    open_world,
)

if TYPE_CHECKING:
    from offmap.loop import OpenWorld
    from offmap.loop.state import GroupStatus

app = typer.Typer()

Row = Annotated[str, typer.Argument(help="A row's id, which 'offmap world observe' prints.")]
Class = Annotated[str, typer.Argument(help="The class.")]


class GroupState(StrEnum):
    """What became of a group that still has rows."""

    OPEN = "open"
    SKIPPED = "skipped"
    NAMED = "named"
    LEARNT = "learnt"
    DISCARDED = "discarded"


Statuses = Annotated[
    list[GroupState] | None,
    typer.Option("--status", help="Groups of this status instead; may be repeated."),
]


@app.command()
def groups(
    world: World,
    limit: Annotated[int, typer.Option(help="At most so many groups.", min=1)] = 20,
    rows: Annotated[int, typer.Option(help="Rows to show per group, from the centre to the edge.", min=0)] = 3,
    statuses: Statuses = None,
    store: Store = None,
    wait: Wait = WAIT,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the groups that wait for a decision, or those of another status."""
    with terminal.messages(quiet) as tell, open_world(world, store, wait) as opened:
        wanted = cast("list[GroupStatus]", [state.value for state in statuses or ()])
        found = opened.groups(*wanted, limit=limit)
        shown = [_group_line(opened, view, rows) for view in found]
        whole = [asdict(view) | {"suggestions": view.suggestions} for view in found]
        if not found:
            tell(f"no groups are {' or '.join(wanted)}" if wanted else "no groups wait for a decision")
    if found or as_json:
        terminal.show("Groups", shown, as_json, whole)


@app.command()
def name(
    world: World,
    group: Group,
    label: Class,
    store: Store = None,
    wait: Wait = WAIT,
    expected: Expected = None,
    as_json: Json = False,
) -> None:
    """Say which class a group is."""
    with open_world(world, store, wait) as opened:
        opened.name(group, as_label(opened, label), expected=expected)
        _tell_revision(opened, as_json)


@app.command()
def merge(
    world: World,
    group: Annotated[int, typer.Argument(metavar="GROUP", help="The group that stays, with its number and name.")],
    other: Annotated[int, typer.Argument(metavar="OTHER", help="The group that is closed; its rows move into GROUP.")],
    store: Store = None,
    wait: Wait = WAIT,
    expected: Expected = None,
    as_json: Json = False,
) -> None:
    """Move all rows of OTHER into GROUP, which stays; OTHER is closed."""
    with open_world(world, store, wait) as opened:
        opened.merge(group, other, expected=expected)
        _tell_revision(opened, as_json)


@app.command()
def split(
    world: World,
    group: Group,
    store: Store = None,
    wait: Wait = WAIT,
    expected: Expected = None,
    as_json: Json = False,
) -> None:
    """Make two groups of one."""
    with open_world(world, store, wait) as opened:
        first, second = opened.split(group, expected=expected)
    terminal.show_pairs("Split", {"group": group, "into": [first, second]}, as_json)


@app.command()
def move(
    world: World,
    row: Row,
    group: Group,
    store: Store = None,
    wait: Wait = WAIT,
    expected: Expected = None,
    as_json: Json = False,
) -> None:
    """Move one row into a group."""
    with open_world(world, store, wait) as opened:
        opened.move(as_row(opened, row), group, expected=expected)
        _tell_revision(opened, as_json)


@app.command()
def discard(
    world: World,
    group: Group,
    store: Store = None,
    wait: Wait = WAIT,
    expected: Expected = None,
    as_json: Json = False,
) -> None:
    """Take a group out of the queue."""
    with open_world(world, store, wait) as opened:
        opened.discard(group, expected=expected)
        _tell_revision(opened, as_json)


@app.command()
def skip(
    world: World,
    group: Group,
    store: Store = None,
    wait: Wait = WAIT,
    expected: Expected = None,
    as_json: Json = False,
) -> None:
    """Put a group at the end of the queue."""
    with open_world(world, store, wait) as opened:
        opened.skip(group, expected=expected)
        _tell_revision(opened, as_json)


@app.command()
def audit(
    world: World,
    n: Annotated[int, typer.Argument(help="How many rows.", min=1)],
    store: Store = None,
    wait: Wait = WAIT,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw random rows of the stream to label, so that the false-alarm rate can be kept."""
    with terminal.messages(quiet) as tell, open_world(world, store, wait) as opened:
        found = opened.audit(n)
        columns = opened.state.columns
        if len(found) < n:
            tell(_why_fewer(opened, len(found), n))
    whole = [{"id": each.id, "row": plain_row(each.row)} for each in found]
    # A number in a table has commas, which an id must not have: it is to be typed again.
    shown = [{"id": str(each.id), "row": shown_row(each.row, columns)} for each in found]
    if found or as_json:
        terminal.show("Label these rows", shown, as_json, whole)


@app.command()
def label(
    world: World,
    row: Row,
    label: Class,
    store: Store = None,
    wait: Wait = WAIT,
    expected: Expected = None,
    as_json: Json = False,
) -> None:
    """Say which class one row is of."""
    with open_world(world, store, wait) as opened:
        opened.label(as_row(opened, row), as_label(opened, label), expected=expected)
        _tell_revision(opened, as_json)


@app.command()
def undo(
    world: World, store: Store = None, wait: Wait = WAIT, expected: ExpectedOfAll = None, as_json: Json = False
) -> None:
    """Take the last decision back."""
    with open_world(world, store, wait) as opened:
        undone = opened.undo(expected=expected)
    _show_decision("undo", "undone", undone, as_json)


@app.command()
def redo(
    world: World, store: Store = None, wait: Wait = WAIT, expected: ExpectedOfAll = None, as_json: Json = False
) -> None:
    """Make the decision again that was undone last."""
    with open_world(world, store, wait) as opened:
        redone = opened.redo(expected=expected)
    _show_decision("redo", "redone", redone, as_json)


def _tell_revision(opened: "OpenWorld", as_json: bool) -> None:
    """Tells a script the revision, which its next decision may expect; a person is told nothing if all went well."""
    if as_json:
        terminal.write(terminal.to_json({"revision": opened.revision}))


def _show_decision(act: str, done: str, decision: str | None, as_json: bool) -> None:
    if decision is None:
        terminal.tell(f"there is nothing to {act}")
    if decision is not None or as_json:
        terminal.show_pairs(done.capitalize(), {done: decision}, as_json)


def _group_line(opened: "OpenWorld", view: Any, rows: int) -> dict[str, Any]:
    status = view.status if view.name is None else f"{view.status}: {view.name}"
    line = {"group": str(view.id), "rows": view.size, "status": status, "telling": view.telling}
    line |= {"like": f"{view.nearest_class}{' (joins it)' if view.joins_class else ''}", "sure": view.sure}
    return line | {"examples": examples(opened, view.rows[:rows])}


def _why_fewer(opened: "OpenWorld", found: int, wanted: int) -> str:
    since = "" if opened.state.version is None else f" since version {opened.state.version}"
    if found:
        return f"only {found} of {wanted} rows: no others were observed{since} that could be drawn"
    if any(number >= opened.state.first_row for number in opened.state.rows):
        return f"all rows observed{since} were audited and labelled; observe more first"
    return f"no rows were observed{since}; observe some first"
