"""``offmap monitor``: from a model and a stream to an alarm."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from offmap.commands import terminal
from offmap.commands.opening import open_rows, require_present, roles_of
from offmap.commands.options import Entity, Label, Model, Quiet, Text, Trust
from offmap.outputs import require_writable

if TYPE_CHECKING:
    from offmap.monitor import DriftMonitor
    from offmap.workflow.fitting import Estimator


def monitor(
    model: Model,
    stream: Annotated[str, typer.Argument(metavar="STREAM", help="The next rows, in their order; as DATA elsewhere.")],
    state: Annotated[
        Path | None, typer.Option(help="A .safetensors file to go on from and to write the state to.")
    ] = None,
    level: Annotated[
        float | None, typer.Option(help="Capital at which the alarm is raised: 100, the default, for 1 % false alarms.")
    ] = None,
    every: Annotated[int, typer.Option(help="Rows per line of output.", min=1)] = 100,
    report: Annotated[Path | None, typer.Option(help="An HTML file with the picture.")] = None,
    text: Text = None,
    label: Label = None,
    entity: Entity = None,
    trust: Trust = None,
    quiet: Quiet = False,
) -> None:
    """Notice when the rows that a model meets change: one line of JSON per batch of rows."""
    for out, suffix in ((state, ".safetensors"), (report, ".html")):
        if out is not None:
            require_writable(out, [suffix], [str(model), stream])
    require_present(model, stream)
    from offmap.workflow import assess, load_model

    with terminal.messages(quiet) as tell:
        loaded = load_model(model, trust or ())
        watched = _opened(state, level, loaded)
        novelty = assess(loaded, open_rows(loaded, stream, roles_of(text, label, entity), scoring=True)).novelty
        with terminal.standard_output() as output:
            for start in range(0, len(novelty), every):
                drift = watched.update(novelty[start : start + every])
                output.write(json.dumps(drift.to_dict(), allow_nan=False) + "\n")
        if state is not None:
            watched.save(state)
        if report is not None:
            _write(report, watched)
        tell(str(watched.drift))


def _opened(state: Path | None, level: float | None, model: "Estimator") -> "DriftMonitor":
    from offmap.monitor import DriftMonitor, fold_novelty

    calibration, folds = model.calibration_novelty_, fold_novelty(model)
    if state is None or not state.exists():
        started = DriftMonitor(random_state=0) if level is None else DriftMonitor(level=level, random_state=0)
        return started.fit(calibration, folds=folds)
    watched = DriftMonitor.load(state)
    if level not in (None, watched.level):
        raise ValueError(f"--level must be that of {state}, {watched.level:g}; leave it out, or name a new --state")
    if not watched.started_with(calibration, folds):
        raise ValueError(f"{state} was started with another model or other calibration rows; name a new --state")
    return watched


def _write(path: Path, watched: "DriftMonitor") -> None:
    from offmap.report.drift import drift_figure, write_drift_page

    drift = watched.drift
    figure = drift_figure(watched.path_, drift.level, drift.alarm_row, drift.since, "drift")
    write_drift_page(path, figure, [str(drift)])
