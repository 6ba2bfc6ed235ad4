"""``offmap export``: from a model file to a form that other systems run."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from offmap.commands import terminal
from offmap.commands.opening import open_rows, require_present, roles_of
from offmap.commands.options import Json, Label, Model, Quiet, Text, Trust


def export(
    model: Model,
    form: Annotated[
        Literal["onnx", "mlflow"], typer.Option("--format", help="onnx: a graph; mlflow: a folder to serve.")
    ],
    out: Annotated[Path, typer.Option(help="A new folder to write.")],
    check: Annotated[
        str | None, typer.Option(metavar="DATA", help="Rows on which the graph must score as the library does.")
    ] = None,
    text: Text = None,
    label: Label = None,
    trust: Trust = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Export a model as an ONNX graph, checked against the library, or as an MLflow folder."""
    require_present(model, *(() if check is None else (check,)))
    if check is not None and form != "onnx":
        raise ValueError("--check must be left out with --format mlflow, which runs the library itself")
    from offmap.export import export_mlflow, export_onnx
    from offmap.export.folders import require_new
    from offmap.workflow import load_model
    from offmap.workflow.scoring import rows_for

    require_new(out)
    with terminal.messages(quiet) as tell:
        loaded = load_model(model, trust or ())
        known: dict[str, Any] = {"format": form, "out": str(out)}
        if form == "mlflow":
            export_mlflow(loaded, out)
        else:
            data = None if check is None else open_rows(loaded, check, roles_of(text, label), scoring=True)
            found = export_onnx(loaded, out, None if data is None else rows_for(loaded, data))
            tell(f"checked: {found}")
            known |= vars(found)
        known["files"] = sorted(path.name for path in out.iterdir())
        tell(f"wrote {', '.join(known['files'])} to {out}")
    if as_json:
        terminal.write(terminal.to_json(known))
