"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

DATA_HELP = "A file (.npz .npy .csv .tsv .parquet), a folder of images, or a data set's name, as fashion-mnist:test."

DataSpec = Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)]
Model = Annotated[Path, typer.Argument(help="A model that 'offmap fit' wrote.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON; a number that is not finite is null.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No messages, warnings or progress bars.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.", min=0)]
Text = Annotated[str | None, typer.Option(help="Column of the text, in a table.")]
Label = Annotated[str | None, typer.Option(help="Column of the label, in a table.")]
Entity = Annotated[str | None, typer.Option(help="Column of the entity (item, user, device) that the row belongs to.")]
Trust = Annotated[
    list[str] | None,
    typer.Option(help="A name outside Offmap that the model file may use, such as that of a text model; repeatable."),
]
