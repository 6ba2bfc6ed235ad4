"""``offmap recalibrate``: threshold and p-values from other normal rows."""

from offmap.commands import terminal
from offmap.commands.opening import open_rows, require_present, roles_of
from offmap.commands.options import DataSpec, Entity, Json, Label, Model, ModelOut, Quiet, Text, Trust
from offmap.outputs import require_writable


def recalibrate(
    model: Model,
    data: DataSpec,
    out: ModelOut,
    text: Text = None,
    label: Label = None,
    entity: Entity = None,
    trust: Trust = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Set threshold and p-values by normal rows that the model has not seen, and save the model."""
    require_writable(out, inputs=[str(model), data])
    require_present(model, data)
    from offmap.workflow import load_model, promise_of, recalibrated, summary_of

    with terminal.messages(quiet) as tell:
        loaded = load_model(model, trust or ())
        fresh = recalibrated(loaded, open_rows(loaded, data, roles_of(text, label, entity), scoring=True))
        fresh.save(out)
        tell(f"wrote {out}; {promise_of(fresh)}")
    terminal.show_pairs("Recalibrated", {"model": str(out), **summary_of(fresh)}, as_json)
