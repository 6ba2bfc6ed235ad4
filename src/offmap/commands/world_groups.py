"""``offmap world``: what a person decides about groups and rows, one decision per command."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from offmap.commands import terminal
from offmap.commands.options import Json, Quiet
from offmap.commands.world_options import Expected, Group, Store, World, as_label, as_row, open_world

if TYPE_CHECKING:
    from offmap.loop import OpenWorld

app = typer.Typer()

Row = Annotated[str, typer.Argument(help="A row's id.")]
Class = Annotated[str, typer.Argument(help="The class.")]


@app.command()
def groups(
    world: World,
    limit: Annotated[int, typer.Option(help="At most so many groups.", min=1)] = 20,
    rows: Annotated[int, typer.Option(help="Rows to show per group, from the centre to the edge.", min=0)] = 3,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the groups that wait for a decision."""
    with terminal.messages(quiet), open_world(world, store) as opened:
        found = opened.groups(limit=limit)
        shown = [_group_line(opened, view, rows) for view in found]
        whole = [asdict(view) | {"suggestions": view.suggestions} for view in found]
    terminal.show("Groups", shown, as_json, whole)


@app.command()
def name(
    world: World, group: Group, label: Class, store: Store = None, expected: Expected = None, as_json: Json = False
) -> None:
    """Say which class a group is."""
    with open_world(world, store) as opened:
        opened.name(group, as_label(opened, label), expected=expected)
        _tell_revision(opened, as_json)


@app.command()
def merge(
    world: World,
    group: Group,
    other: Annotated[int, typer.Argument(help="The group that is closed.")],
    store: Store = None,
    expected: Expected = None,
    as_json: Json = False,
) -> None:
    """Move all rows of one group into another."""
    with open_world(world, store) as opened:
        opened.merge(group, other, expected=expected)
        _tell_revision(opened, as_json)


@app.command()
def split(world: World, group: Group, store: Store = None, expected: Expected = None, as_json: Json = False) -> None:
    """Make two groups of one."""
    with open_world(world, store) as opened:
        first, second = opened.split(group, expected=expected)
    terminal.show_pairs("Split", {"group": group, "into": [first, second]}, as_json)


@app.command()
def move(
    world: World, row: Row, group: Group, store: Store = None, expected: Expected = None, as_json: Json = False
) -> None:
    """Move one row into a group."""
    with open_world(world, store) as opened:
        opened.move(as_row(opened, row), group, expected=expected)
        _tell_revision(opened, as_json)


@app.command()
def discard(world: World, group: Group, store: Store = None, expected: Expected = None, as_json: Json = False) -> None:
    """Take a group out of the queue."""
    with open_world(world, store) as opened:
        opened.discard(group, expected=expected)
        _tell_revision(opened, as_json)


@app.command()
def skip(world: World, group: Group, store: Store = None, expected: Expected = None, as_json: Json = False) -> None:
    """Put a group at the end of the queue."""
    with open_world(world, store) as opened:
        opened.skip(group, expected=expected)
        _tell_revision(opened, as_json)


@app.command()
def audit(
    world: World,
    n: Annotated[int, typer.Argument(help="How many rows.", min=1)],
    store: Store = None,
    as_json: Json = False,
) -> None:
    """Draw random rows of the stream to label, so that the false-alarm rate can be kept."""
    with open_world(world, store) as opened:
        found = [
            {"id": row.id, "row": row.row if isinstance(row.row, str) else row.row.tolist()} for row in opened.audit(n)
        ]
    terminal.show("Label these rows", found, as_json)


@app.command()
def label(
    world: World, row: Row, label: Class, store: Store = None, expected: Expected = None, as_json: Json = False
) -> None:
    """Say which class one row is of."""
    with open_world(world, store) as opened:
        opened.label(as_row(opened, row), as_label(opened, label), expected=expected)
        _tell_revision(opened, as_json)


@app.command()
def undo(world: World, store: Store = None, expected: Expected = None, as_json: Json = False) -> None:
    """Take the last decision back."""
    with open_world(world, store) as opened:
        terminal.show_pairs("Undone", {"undone": opened.undo(expected=expected)}, as_json)


@app.command()
def redo(world: World, store: Store = None, expected: Expected = None, as_json: Json = False) -> None:
    """Make the decision again that was undone last."""
    with open_world(world, store) as opened:
        terminal.show_pairs("Redone", {"redone": opened.redo(expected=expected)}, as_json)


def _tell_revision(opened: "OpenWorld", as_json: bool) -> None:
    """Tells a script the revision, which its next decision may expect; a person is told nothing if all went well."""
    if as_json:
        terminal.write(terminal.to_json({"revision": opened.revision}))


def _group_line(opened: "OpenWorld", view: Any, rows: int) -> dict[str, Any]:
    line = {"group": view.id, "rows": view.size, "status": view.status, "telling": view.telling}
    line |= {"like": f"{view.nearest_class}{' (joins it)' if view.joins_class else ''}", "sure": view.sure}
    examples = opened.rows(view.rows[:rows]) if rows else ()
    texts = [str(row) for row in examples if isinstance(row, str)]
    return line | {"examples": texts or list(view.rows[:rows])}
