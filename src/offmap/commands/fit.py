"""``offmap fit``: from data to a model."""

from pathlib import Path
from typing import Annotated

import typer

from offmap.commands import terminal
from offmap.commands.opening import open_rows, require_plain, require_present, roles_of
from offmap.commands.options import (
    DataSpec,
    Drop,
    Entity,
    HoldOut,
    Id,
    Json,
    Keep,
    Kinds,
    Label,
    ModelOut,
    Only,
    Quiet,
    Seed,
    Settings,
    Stream,
    Text,
)
from offmap.outputs import require_writable


def fit(
    method: Annotated[str, typer.Argument(help="A method's name; 'offmap methods' lists them.")],
    data: DataSpec,
    out: ModelOut,
    settings: Settings = None,
    text: Text = None,
    label: Label = None,
    entity: Entity = None,
    only: Only = None,
    drop: Drop = None,
    ids: Id = None,
    keep: Keep = None,
    kinds: Kinds = None,
    hold_out: HoldOut = None,
    stream: Stream = False,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a method to data and save the model; it remembers what the columns are for.

    Started by torchrun (torchrun --nproc-per-node 2 -m offmap fit …), all processes train one model.
    """
    require_writable(out, inputs=[data])
    require_present(None, data)
    from offmap.distributed import together
    from offmap.workflow import configure, fit_model, fit_stream, promise_of, save_model, summary_of, try_held_out

    with together() as processes, terminal.messages(quiet or not processes.first) as tell:
        estimator = configure(method, settings or [], seed)
        roles = roles_of(text, label, entity, only, drop, ids, keep, kinds)
        if stream:
            require_plain(roles, hold_out)
            trial, model = None, fit_stream(estimator, Path(data))
        else:
            opened = open_rows(estimator, data, roles)
            trial = try_held_out(estimator, opened, hold_out, roles, seed) if hold_out else None
            model = fit_model(estimator, opened, roles) if trial is None else trial.model
        if not processes.first:
            return
        save_model(model, out)
        tell(f"wrote {out}; {promise_of(model)}")
    held_out = {} if trial is None else {"held_out": hold_out, "test": trial.section.metrics}
    terminal.show_pairs("Fitted", {"model": str(out), **summary_of(model), **held_out}, as_json)
