"""``offmap world``: the open-world loop from the shell, one act per command."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from offmap.commands import terminal
from offmap.commands.opening import roles_of
from offmap.commands.options import DataSpec, Drop, Id, Json, Label, Only, Quiet, Seed, Settings, Text
from offmap.commands.world_groups import app as decisions
from offmap.commands.world_options import WAIT, ExpectedOfAll, Store, Wait, World, open_world
from offmap.commands.world_remedies import rows_called

if TYPE_CHECKING:
    from offmap.loop import OpenWorld

app = typer.Typer(help="Group unknown rows, name the groups, learn them.", no_args_is_help=True)


@app.command()
def create(
    world: World,
    data: DataSpec,
    method: Annotated[str, typer.Option(help="A classifier that learns new classes.")] = "analytic",
    alpha: Annotated[float, typer.Option(help="False-alarm rate to keep.")] = 0.05,
    review: Annotated[
        float, typer.Option(help="Rows with a p-value up to this wait to be grouped, rejected or not.", min=0, max=1)
    ] = 0.2,
    settings: Settings = None,
    min_group: Annotated[int, typer.Option(help="Smallest group that is proposed.")] = 5,
    reassign: Annotated[bool, typer.Option(help="Learn unread rows of a named group as the class they lie in.")] = True,
    text: Text = None,
    label: Label = None,
    only: Only = None,
    drop: Drop = None,
    ids: Id = None,
    seed: Seed = 0,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a world and teach it the known classes."""
    from offmap.commands.world_making import taught_world
    from offmap.commands.world_rows import labelled_rows
    from offmap.data import TextEncoder
    from offmap.workflow import configure

    with terminal.messages(quiet):
        rows, labels = labelled_rows(data, roles_of(text, label, only=only, drop=drop, ids=ids))
        classifier: Any = configure(method, settings or [], seed)
        if rows.kind == "text" and classifier.encoder is None:
            classifier.set_params(encoder=TextEncoder())
        options = {"alpha": alpha, "review": review, "min_group": min_group, "reassign": reassign, "seed": seed}
        with taught_world(world, store, rows, labels, classifier=classifier, **options) as made:
            _show_status(made, as_json)


@app.command()
def teach(
    world: World,
    data: DataSpec,
    text: Text = None,
    label: Label = None,
    only: Only = None,
    drop: Drop = None,
    ids: Id = None,
    store: Store = None,
    wait: Wait = WAIT,
    expected: ExpectedOfAll = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach more labelled rows that are a random sample of their classes.

    Rows that were found by reviewing are no such sample: name or label them, and use 'offmap world learn'.
    """
    from offmap.commands.world_rows import labelled_rows, named_rows
    from offmap.workflow.scoring import require_readable

    with terminal.messages(quiet), open_world(world, store, wait) as opened:
        rows, labels = labelled_rows(data, roles_of(text, label, only=only, drop=drop, ids=ids))
        if opened.state.version is not None:
            require_readable(opened.classifier, rows)
        with rows_called(rows.name):
            opened.teach(named_rows(rows), labels, expected=expected)
        _show_status(opened, as_json)


@app.command()
def observe(
    world: World,
    data: DataSpec,
    text: Text = None,
    ids: Annotated[
        str | None,
        typer.Option(help="Column of the row's id, in a table; by default rows are numbered, and images are files."),
    ] = None,
    store: Store = None,
    wait: Wait = WAIT,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Assess rows of the stream; rejected rows wait to be grouped."""
    from offmap.commands.world_rows import named_rows, stream_rows
    from offmap.workflow.scoring import require_readable

    with terminal.messages(quiet) as tell, open_world(world, store, wait) as opened:
        model = opened.classifier
        rows, given = stream_rows(data, text, ids)
        require_readable(model, rows)
        with rows_called(rows.name):
            verdict = opened.observe(named_rows(rows), ids=given)
        tell(f"{len(verdict)} rows observed, {int(verdict.novel.sum())} rejected")
        frame = verdict.to_frame()
        frame.insert(0, "id", given or _newest_ids(opened, len(verdict)))
    terminal.write_table(frame, as_json)


app.registered_commands += decisions.registered_commands


@app.command()
def learn(
    world: World,
    store: Store = None,
    wait: Wait = WAIT,
    expected: ExpectedOfAll = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach the model what was named, and set its threshold anew."""
    with terminal.messages(quiet), open_world(world, store, wait) as opened:
        opened.learn(expected=expected)
        _show_status(opened, as_json)


@app.command()
def rollback(
    world: World,
    version: Annotated[int, typer.Argument(help="A version's number, at most that of the one in use.", min=1)],
    store: Store = None,
    wait: Wait = WAIT,
    expected: ExpectedOfAll = None,
    as_json: Json = False,
) -> None:
    """Return to an earlier version of the model."""
    with open_world(world, store, wait) as opened:
        opened.rollback(version, expected=expected)
        _show_status(opened, as_json)


@app.command()
def status(world: World, store: Store = None, wait: Wait = WAIT, as_json: Json = False) -> None:
    """Show counts, the promise that holds now, and what it needs."""
    with open_world(world, store, wait) as opened:
        _show_status(opened, as_json)


@app.command()
def history(
    world: World,
    after: Annotated[int, typer.Option(help="Only what was decided after this revision.", min=0)] = 0,
    store: Store = None,
    wait: Wait = WAIT,
    as_json: Json = False,
) -> None:
    """List what was decided, undone decisions included."""
    with open_world(world, store, wait) as opened:
        acts = [asdict(act) for act in opened.acts(after)]
    if acts or as_json:
        terminal.show("History", acts, as_json)
    else:
        terminal.tell(f"nothing was decided after revision {after}" if after else "nothing was decided yet")


@app.command()
def export(
    world: World,
    out: Annotated[Path, typer.Option(help="Where to write the model in use, a .safetensors file.")],
    store: Store = None,
    wait: Wait = WAIT,
    as_json: Json = False,
) -> None:
    """Write the model in use to a file that 'offmap score' reads."""
    from offmap.outputs import require_writable

    require_writable(out, [".safetensors"])
    with open_world(world, store, wait) as opened:
        version = opened.export(out)
    terminal.show_pairs("Exported", {"model": str(out), "version": version}, as_json)


def _newest_ids(opened: "OpenWorld", count: int) -> list[Any]:
    """The ids of the rows that were observed last, in their order."""
    return [row.id for row in list(opened.state.rows.values())[-count:]]


def _show_status(opened: "OpenWorld", as_json: bool) -> None:
    found = opened.status()
    shown = asdict(found)
    if found.measured is not None:
        shown["measured"] = list(found.measured) if as_json else str(found.measured)
    terminal.show_pairs("World", shown, as_json)
