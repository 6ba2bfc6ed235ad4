"""``offmap explain``: why rows are novel."""

from pathlib import Path
from typing import Annotated

import typer

from offmap.commands import terminal
from offmap.commands.opening import open_rows
from offmap.commands.options import DataSpec, Entity, Json, Label, Model, Quiet, Reference, Text


def explain(
    model: Model,
    data: DataSpec,
    reference: Reference = None,
    row: Annotated[list[int] | None, typer.Option(help="Number of a row, from 0; all rows without it.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw one --row to this .svg file.")] = None,
    text: Text = None,
    label: Label = None,
    entity: Entity = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say why rows are novel, and what would make them normal."""
    from offmap.files import replacing
    from offmap.workflow import explain_rows, load_model, require_writable

    with terminal.messages(quiet) as tell:
        if picture is not None:
            if row is None or len(row) != 1:
                raise ValueError("--picture needs one --row: it shows one row")
            require_writable(picture, (".svg",), [str(model), data, *([reference] if reference else [])])
        loaded = load_model(model)
        rows = open_rows(loaded, data, text, label, entity)
        normal = None if reference is None else open_rows(loaded, reference, text, label, entity)
        found = explain_rows(loaded, rows, normal, rows=row)
        if picture is not None:
            with replacing(picture) as fresh:
                fresh.write_text(found[0].to_svg(), encoding="utf-8")
            tell(f"wrote {picture}")
    if as_json:
        terminal.write(terminal.to_json([explanation.to_dict() for explanation in found]))
    else:
        terminal.write("\n\n".join(map(str, found)) + "\n")
