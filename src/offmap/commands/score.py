"""``offmap score``: from a model to scores."""

from pathlib import Path
from typing import Annotated

import typer

from offmap.commands import terminal
from offmap.commands.opening import open_rows
from offmap.commands.options import DataSpec, Entity, Json, Label, Model, Quiet, Text, Trust


def score(
    model: Model,
    data: DataSpec,
    out: Annotated[Path | None, typer.Option(help="A .parquet or .csv file; CSV to standard output if absent.")] = None,
    text: Text = None,
    label: Label = None,
    entity: Entity = None,
    trust: Trust = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score each row: novelty, p-value, and what the model makes of it."""
    from offmap.cells import inert
    from offmap.workflow import TABLE_SUFFIXES, load_model, require_writable, score_rows, write_frame

    with terminal.messages(quiet) as tell:
        if out is not None:
            require_writable(out, TABLE_SUFFIXES, [str(model), data])
        loaded = load_model(model, trust or ())
        frame = score_rows(loaded, open_rows(loaded, data, text, label, entity))
        novel = int(frame["novel"].sum())
        if out is not None:
            write_frame(frame, out)
            tell(f"wrote {len(frame)} rows to {out}, {novel} of them novel")
    if out is not None and as_json:
        terminal.write(terminal.to_json({"out": str(out), "rows": len(frame), "novel": novel}))
    elif out is None and as_json:
        terminal.write_records(list(frame.columns), frame.itertuples(index=False, name=None))
    elif out is None:
        with terminal.standard_output() as stream:
            inert(frame).to_csv(stream, index=False)
