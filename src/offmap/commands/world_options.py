"""What the commands of a world share: its place, its groups, the revision that the caller saw."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from offmap.loop import OpenWorld

World = Annotated[
    Path, typer.Argument(metavar="WORLD", help="The folder of a world, or with --store its name in the database.")
]
Store = Annotated[
    str | None,
    typer.Option(
        envvar="OFFMAP_STORE",
        show_envvar=True,
        help="A PostgreSQL database that keeps the world, as postgresql://user@host/database.",
    ),
]
Group = Annotated[int, typer.Argument(help="A group's number; 'offmap world groups' lists them.")]
Expected = Annotated[
    int | None,
    typer.Option(
        help="The revision that you saw ('offmap world status' shows it): refuse if the group has changed since.", min=0
    ),
]
# Seconds that a command waits for another one to end: scripts may run several at once.
_WAIT = 60.0


def open_world(path: Path, store: str | None) -> "OpenWorld":
    """The world in a folder or in a database."""
    from offmap.loop import OpenWorld

    return OpenWorld.open(path, store=store, wait=_WAIT)


def as_label(opened: "OpenWorld", text: str) -> int | str:
    """A label of the type that the known classes have."""
    integers = opened.classifier.classes_.dtype.kind not in "UO"
    return int(text) if integers and text.lstrip("-").isdecimal() else text


def as_row(opened: "OpenWorld", text: str) -> int | str:
    """The id of a row: a number, unless a row is called so in letters."""
    return int(text) if text not in opened.state.numbers and text.lstrip("-").isdecimal() else text
