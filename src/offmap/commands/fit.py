"""``offmap fit``: from data to a model."""

from pathlib import Path
from typing import Annotated

import typer

from offmap.commands import terminal
from offmap.commands.opening import open_rows
from offmap.commands.options import DataSpec, Entity, Json, Label, Quiet, Seed, Text


def fit(
    method: Annotated[str, typer.Argument(help="A method's name; 'offmap methods' lists them.")],
    data: DataSpec,
    out: Annotated[Path, typer.Option(help="Where to write the model, a .safetensors file.")],
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter, as name=value.")] = None,
    text: Text = None,
    label: Label = None,
    entity: Entity = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a method to data and save the model."""
    from offmap.workflow import configure, fit_model, promise_of, require_writable, save_model, summary_of

    with terminal.messages(quiet) as tell:
        require_writable(out, inputs=[data])
        estimator = configure(method, settings or [], seed)
        model = fit_model(estimator, open_rows(estimator, data, text, label, entity))
        save_model(model, out)
        tell(f"wrote {out}; {promise_of(model)}")
    terminal.show_pairs("Fitted", {"model": str(out), **summary_of(model)}, as_json)
