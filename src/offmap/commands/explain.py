"""``offmap explain``: why rows are novel."""

from pathlib import Path
from typing import Annotated

import typer

from offmap.commands import terminal
from offmap.commands.opening import open_rows, require_present, roles_of
from offmap.commands.options import DataSpec, Entity, Json, Label, Model, Quiet, Reference, Text, Trust
from offmap.files import replacing
from offmap.outputs import require_writable


def explain(
    model: Model,
    data: DataSpec,
    reference: Reference = None,
    row: Annotated[list[int] | None, typer.Option(help="Number of a row, from 0; all rows without it.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw one --row to this .svg file.")] = None,
    text: Text = None,
    label: Label = None,
    entity: Entity = None,
    trust: Trust = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say why rows are novel, and what would make them normal."""
    given = [data, *([reference] if reference else [])]
    if picture is not None:
        if row is None or len(row) != 1:
            raise ValueError("--picture needs one --row: it shows one row")
        require_writable(picture, (".svg",), [str(model), *given])
    require_present(model, *given)
    from offmap.workflow import explain_rows, load_model

    with terminal.messages(quiet) as tell:
        loaded, roles = load_model(model, trust or ()), roles_of(text, label, entity)
        rows = open_rows(loaded, data, roles, scoring=True)
        normal = None if reference is None else open_rows(loaded, reference, roles, scoring=True)
        found = explain_rows(loaded, rows, normal, rows=row)
        if picture is not None:
            with replacing(picture) as fresh:
                fresh.write_text(found[0].to_svg(), encoding="utf-8")
            tell(f"wrote {picture}")
    if as_json:
        terminal.write(terminal.to_json([explanation.to_dict() for explanation in found]))
    else:
        terminal.write("\n\n".join(map(str, found)) + "\n")
