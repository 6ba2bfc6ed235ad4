"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

DATA_HELP = (
    "A file (.csv .tsv .parquet .jsonl .npz .npy), a folder of images, or a data set's name, as fashion-mnist:test; "
    "- reads CSV or JSON lines from standard input."
)

DataSpec = Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)]
Model = Annotated[Path, typer.Argument(help="A model that 'offmap fit' wrote.")]
ModelOut = Annotated[Path, typer.Option(help="Where to write the model, a .safetensors file.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="A parameter, as name=value.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON; a number that is not finite is null.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No messages, warnings or progress bars.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.", min=0)]
Text = Annotated[str | None, typer.Option(help="Column of the text, in a table.")]
Label = Annotated[str | None, typer.Option(help="Column of the label, in a table.")]
Entity = Annotated[str | None, typer.Option(help="Column of the entity (item, user, device) that the row belongs to.")]
Reference = Annotated[
    str | None, typer.Option(help="Normal rows to compare with, such as the training data; a data file or set.")
]
Known = Annotated[
    str | None,
    typer.Option(
        metavar="DATA",
        help="Rows of known classes that the model has not seen: rows are then judged together, which finds new "
        "classes better.",
    ),
]
Explain = Annotated[int, typer.Option(help="Add this many reasons for the novelty of each row, as columns.", min=0)]
Only = Annotated[list[str] | None, typer.Option(help="Column to learn from, and no other; may be repeated.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")]
Id = Annotated[list[str] | None, typer.Option("--id", help="Column that names a row; may be repeated.")]
Keep = Annotated[list[str] | None, typer.Option(help="Column to keep beside the scores, or 'all'; may be repeated.")]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", help="Kind of a column, as zip=category (number, boolean, date, category)."),
]
HoldOut = Annotated[
    list[str] | None, typer.Option(help="Class to leave out of training and to test with; may be repeated.")
]
Stream = Annotated[
    bool,
    typer.Option(
        help="Read a Parquet file, or a folder of them, while training: for numbers that do not fit in memory."
    ),
]
Alpha = Annotated[float | None, typer.Option(help="Another false-alarm rate than the fitted one.")]
AlphaOrAuto = Annotated[
    str | None,
    typer.Option("--alpha", help="Another false-alarm rate than the fitted one, or 'auto': as the rows suggest."),
]
AlertBudget = Annotated[
    str | None, typer.Option("--budget", help="False alarms instead of a rate, as 50/10000 (50 in 10,000 rows).")
]
NewEntityRule = Annotated[
    Literal["flag", "skip", "add", "error"],
    typer.Option(help="Rows of unknown entities: flag them, skip them, add the entity first, or stop."),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(help="A name outside Offmap that the model file may use, such as that of a text model; repeatable."),
]
