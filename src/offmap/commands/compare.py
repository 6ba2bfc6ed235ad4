"""``offmap compare``: which method notices novel rows best on one's own data."""

from typing import Annotated

import typer

from offmap.commands import terminal
from offmap.commands.opening import open_rows, require_present, roles_of
from offmap.commands.options import Drop, HoldOut, Id, Json, Kinds, Label, Only, Quiet, Text


def compare(
    what: Annotated[list[str], typer.Argument(metavar="METHOD… DATA", help="Methods, and the data at the end.")],
    novel: Annotated[str | None, typer.Option(help="Rows that are novel, if no class is held out.")] = None,
    hold_out: HoldOut = None,
    splits: Annotated[int, typer.Option(help="Random splits that every method is fitted on.", min=2)] = 5,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of every method that has it.")
    ] = None,
    text: Text = None,
    label: Label = None,
    only: Only = None,
    drop: Drop = None,
    ids: Id = None,
    kinds: Kinds = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rank methods by how well they notice novel rows, and say which differences are noise."""
    if len(what) < 2:
        raise ValueError("give at least one method and, at the end, the data")
    *methods, data = what
    require_present(None, data, *([novel] if novel else []))
    from offmap.workflow import compare as compared
    from offmap.workflow import configure_all

    with terminal.messages(quiet):
        estimators = configure_all(methods, settings or [])
        roles = roles_of(text, label, None, only, drop, ids, kinds=kinds)
        opened = open_rows(estimators[0], data, roles)
        unknown = open_rows(estimators[0], novel, roles, optional=["label"]) if novel else None
        found = compared(estimators, opened, hold_out=hold_out or (), novel=unknown, roles=roles, splits=splits)
    terminal.show("Leaderboard", [line._asdict() for line in found], as_json)
