"""``offmap world``: the open-world loop from the shell, one act per command."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from offmap.commands import terminal
from offmap.commands.options import DataSpec, Json, Label, Quiet, Seed, Text

if TYPE_CHECKING:
    from offmap.loop import OpenWorld

app = typer.Typer(help="Group unknown rows, name the groups, learn them.", no_args_is_help=True)

World = Annotated[Path, typer.Argument(metavar="WORLD", help="The folder of a world.")]
Group = Annotated[int, typer.Argument(help="A group's number; 'offmap world groups' lists them.")]
# Seconds that a command waits for another one to end: scripts may run several at once.
_WAIT = 60.0


@app.command()
def create(
    world: World,
    data: DataSpec,
    method: Annotated[str, typer.Option(help="A classifier that learns new classes.")] = "analytic",
    alpha: Annotated[float, typer.Option(help="False-alarm rate to keep.")] = 0.05,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter, as name=value.")] = None,
    min_group: Annotated[int, typer.Option(help="Smallest group that is proposed.")] = 5,
    text: Text = None,
    label: Label = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a world and teach it the known classes."""
    from offmap.data import TextEncoder, open_data
    from offmap.loop import OpenWorld
    from offmap.workflow import configure

    with terminal.messages(quiet):
        rows = open_data(data, text=text, label=label)
        if rows.y is None:
            raise ValueError(f"{rows.name} has no labels; a table needs --label COLUMN")
        classifier: Any = configure(method, settings or [], seed)
        if rows.kind == "text" and classifier.encoder is None:
            classifier.set_params(encoder=TextEncoder())
        with OpenWorld.create(world, classifier=classifier, alpha=alpha, min_group=min_group, seed=seed) as made:
            made.teach(rows.X, rows.y)
            _show_status(made, as_json)


@app.command()
def observe(
    world: World,
    data: DataSpec,
    text: Text = None,
    ids: Annotated[str | None, typer.Option(help="Column of the row's id, in a table of texts or numbers.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Assess rows of the stream; rejected rows wait to be grouped."""
    from offmap.data import open_data

    with terminal.messages(quiet) as tell, _open(world) as opened:
        # The reader takes one column out of the features: that of the label, here that of the ids.
        rows = open_data(data, text=text, label=ids)
        verdict = opened.observe(rows.X, ids=rows.y if ids is not None else None)
        tell(f"{len(verdict)} rows observed, {int(verdict.novel.sum())} rejected")
        frame = verdict.to_frame()
    if as_json:
        terminal.write_records(list(frame.columns), frame.itertuples(index=False, name=None))
    else:
        with terminal.standard_output() as stream:
            frame.to_csv(stream, index=False)


@app.command()
def groups(
    world: World,
    limit: Annotated[int, typer.Option(help="At most so many groups.", min=1)] = 20,
    rows: Annotated[int, typer.Option(help="Rows to show per group, from the centre to the edge.", min=0)] = 3,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the groups that wait for a decision."""
    with terminal.messages(quiet), _open(world) as opened:
        found = opened.groups(limit=limit)
        shown = [_group_line(opened, view, rows) for view in found]
        whole = [asdict(view) | {"suggestions": view.suggestions} for view in found]
    terminal.show("Groups", shown, as_json, whole)


@app.command()
def name(world: World, group: Group, label: Annotated[str, typer.Argument(help="The class.")]) -> None:
    """Say which class a group is."""
    with _open(world) as opened:
        opened.name(group, _as_label(opened, label))


@app.command()
def merge(world: World, group: Group, other: Annotated[int, typer.Argument(help="The group that is closed.")]) -> None:
    """Move all rows of one group into another."""
    with _open(world) as opened:
        opened.merge(group, other)


@app.command()
def split(world: World, group: Group, as_json: Json = False) -> None:
    """Make two groups of one."""
    with _open(world) as opened:
        first, second = opened.split(group)
    terminal.show_pairs("Split", {"group": group, "into": [first, second]}, as_json)


@app.command()
def discard(world: World, group: Group) -> None:
    """Take a group out of the queue."""
    with _open(world) as opened:
        opened.discard(group)


@app.command()
def skip(world: World, group: Group) -> None:
    """Put a group at the end of the queue."""
    with _open(world) as opened:
        opened.skip(group)


@app.command()
def audit(world: World, n: Annotated[int, typer.Argument(help="How many rows.", min=1)], as_json: Json = False) -> None:
    """Draw random rows of the stream to label, so that the false-alarm rate can be kept."""
    with _open(world) as opened:
        found = [
            {"id": row.id, "row": row.row if isinstance(row.row, str) else row.row.tolist()} for row in opened.audit(n)
        ]
    terminal.show("Label these rows", found, as_json)


@app.command()
def label(
    world: World,
    row: Annotated[str, typer.Argument(help="A row's id.")],
    label: Annotated[str, typer.Argument(help="The class.")],
) -> None:
    """Say which class one row is of."""
    with _open(world) as opened:
        identity = int(row) if row not in opened.state.numbers and row.lstrip("-").isdecimal() else row
        opened.label(identity, _as_label(opened, label))


@app.command()
def learn(world: World, as_json: Json = False, quiet: Quiet = False) -> None:
    """Teach the model what was named, and set its threshold anew."""
    with terminal.messages(quiet), _open(world) as opened:
        opened.learn()
        _show_status(opened, as_json)


@app.command()
def undo(world: World, as_json: Json = False) -> None:
    """Take the last decision back."""
    with _open(world) as opened:
        terminal.show_pairs("Undone", {"undone": opened.undo()}, as_json)


@app.command()
def redo(world: World, as_json: Json = False) -> None:
    """Make the decision again that was undone last."""
    with _open(world) as opened:
        terminal.show_pairs("Redone", {"redone": opened.redo()}, as_json)


@app.command()
def status(world: World, as_json: Json = False) -> None:
    """Show counts, the promise that holds now, and what it needs."""
    with _open(world) as opened:
        _show_status(opened, as_json)


@app.command()
def export(
    world: World,
    out: Annotated[Path, typer.Option(help="Where to write the model in use, a .safetensors file.")],
    as_json: Json = False,
) -> None:
    """Write the model in use to a file that 'offmap score' reads."""
    from offmap.workflow import require_writable

    require_writable(out)
    with _open(world) as opened:
        opened.classifier.save(out)
        terminal.show_pairs("Exported", {"model": str(out), "version": opened.state.version}, as_json)


def _open(path: Path) -> "OpenWorld":
    from offmap.loop import OpenWorld

    return OpenWorld.open(path, wait=_WAIT)


def _as_label(opened: "OpenWorld", text: str) -> int | str:
    """A label of the type that the known classes have."""
    integers = opened.classifier.classes_.dtype.kind not in "UO"
    return int(text) if integers and text.lstrip("-").isdecimal() else text


def _group_line(opened: "OpenWorld", view: Any, rows: int) -> dict[str, Any]:
    line = {"group": view.id, "rows": view.size, "status": view.status, "telling": view.telling}
    line |= {"like": f"{view.nearest_class}{' (joins it)' if view.joins_class else ''}", "sure": view.sure}
    examples = opened.rows(view.rows[:rows]) if rows else ()
    texts = [str(row) for row in examples if isinstance(row, str)]
    return line | {"examples": texts or list(view.rows[:rows])}


def _show_status(opened: "OpenWorld", as_json: bool) -> None:
    found = opened.status()
    measured = None if found.measured is None else list(found.measured)
    terminal.show_pairs("World", asdict(found) | {"measured": measured}, as_json)
