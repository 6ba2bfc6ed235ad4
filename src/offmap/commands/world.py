"""``offmap world``: the open-world loop from the shell, one act per command."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from offmap.commands import terminal
from offmap.commands.options import DataSpec, Json, Label, Quiet, Seed, Text
from offmap.commands.world_groups import app as decisions
from offmap.commands.world_options import Expected, Store, World, open_world

if TYPE_CHECKING:
    from offmap.loop import OpenWorld

app = typer.Typer(help="Group unknown rows, name the groups, learn them.", no_args_is_help=True)


@app.command()
def create(
    world: World,
    data: DataSpec,
    method: Annotated[str, typer.Option(help="A classifier that learns new classes.")] = "analytic",
    alpha: Annotated[float, typer.Option(help="False-alarm rate to keep.")] = 0.05,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter, as name=value.")] = None,
    min_group: Annotated[int, typer.Option(help="Smallest group that is proposed.")] = 5,
    reassign: Annotated[bool, typer.Option(help="Learn unread rows of a named group as the class they lie in.")] = True,
    text: Text = None,
    label: Label = None,
    seed: Seed = 0,
    store: Store = None,
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
        with OpenWorld.create(
            world,
            classifier=classifier,
            alpha=alpha,
            min_group=min_group,
            reassign=reassign,
            seed=seed,
            store=store,
        ) as made:
            made.teach(rows.X, rows.y)
            _show_status(made, as_json)


@app.command()
def observe(
    world: World,
    data: DataSpec,
    text: Text = None,
    ids: Annotated[str | None, typer.Option(help="Column of the row's id, in a table of texts or numbers.")] = None,
    store: Store = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Assess rows of the stream; rejected rows wait to be grouped."""
    from offmap.data import open_data

    with terminal.messages(quiet) as tell, open_world(world, store) as opened:
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


app.registered_commands += decisions.registered_commands


@app.command()
def learn(
    world: World, store: Store = None, expected: Expected = None, as_json: Json = False, quiet: Quiet = False
) -> None:
    """Teach the model what was named, and set its threshold anew."""
    with terminal.messages(quiet), open_world(world, store) as opened:
        opened.learn(expected=expected)
        _show_status(opened, as_json)


@app.command()
def rollback(
    world: World,
    version: Annotated[int, typer.Argument(help="A version's number, at most that of the one in use.", min=1)],
    store: Store = None,
    expected: Expected = None,
    as_json: Json = False,
) -> None:
    """Return to an earlier version of the model."""
    with open_world(world, store) as opened:
        opened.rollback(version, expected=expected)
        _show_status(opened, as_json)


@app.command()
def status(world: World, store: Store = None, as_json: Json = False) -> None:
    """Show counts, the promise that holds now, and what it needs."""
    with open_world(world, store) as opened:
        _show_status(opened, as_json)


@app.command()
def history(
    world: World,
    after: Annotated[int, typer.Option(help="Only what was decided after this revision.", min=0)] = 0,
    store: Store = None,
    as_json: Json = False,
) -> None:
    """List what was decided, undone decisions included."""
    with open_world(world, store) as opened:
        terminal.show("History", [asdict(act) for act in opened.acts(after)], as_json)


@app.command()
def export(
    world: World,
    out: Annotated[Path, typer.Option(help="Where to write the model in use, a .safetensors file.")],
    store: Store = None,
    as_json: Json = False,
) -> None:
    """Write the model in use to a file that 'offmap score' reads."""
    from offmap.workflow import require_writable

    require_writable(out)
    with open_world(world, store) as opened:
        opened.classifier.save(out)
        terminal.show_pairs("Exported", {"model": str(out), "version": opened.state.version}, as_json)


def _show_status(opened: "OpenWorld", as_json: bool) -> None:
    found = opened.status()
    measured = None if found.measured is None else list(found.measured)
    terminal.show_pairs("World", asdict(found) | {"measured": measured}, as_json)
