"""What the commands of a world share: its place, its groups, the revision that the caller saw."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from offmap.commands.world_remedies import shell_remedies

if TYPE_CHECKING:
    from offmap.loop import OpenWorld

# Seconds that a command waits for another one to end: scripts may run several at once.
WAIT = 60.0

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
Wait = Annotated[
    float,
    typer.Option(metavar="SECONDS", help="How long to wait for another process that has the world open.", min=0),
]
Group = Annotated[int, typer.Argument(help="A group's number; 'offmap world groups' lists them.")]
Expected = Annotated[
    int | None,
    typer.Option(
        help="The revision that you saw ('offmap world status' shows it): refuse if group or row has changed since.",
        min=0,
    ),
]
ExpectedOfAll = Annotated[
    int | None,
    typer.Option(
        help="The revision that you saw ('offmap world status' shows it): refuse if anything was decided since.", min=0
    ),
]


@contextmanager
def open_world(path: Path, store: str | None, wait: float) -> Iterator["OpenWorld"]:
    """The world in a folder or in a database; what is wrong with it or with an act is told in words of the shell."""
    from offmap.loop import OpenWorld

    with shell_remedies(), OpenWorld.open(path, store=store, wait=wait) as opened:
        yield opened


def as_label(opened: "OpenWorld", text: str) -> int | str:
    """A label of the type that the known classes have."""
    integers = opened.classifier.classes_.dtype.kind not in "UO"
    return int(text) if integers and text.lstrip("-").isdecimal() else text


def as_row(opened: "OpenWorld", text: str) -> int | str:
    """The id of a row: a number, unless a row is called so in letters."""
    return int(text) if text not in opened.state.numbers and text.lstrip("-").isdecimal() else text
