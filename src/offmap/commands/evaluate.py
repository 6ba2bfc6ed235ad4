"""``offmap evaluate``: how well a model tells novel rows from normal ones."""

from pathlib import Path
from typing import Annotated

import typer

from offmap.commands import terminal
from offmap.commands.opening import open_rows, require_present, roles_of
from offmap.commands.options import DATA_HELP, AlertBudget, Alpha, Entity, Json, Label, Model, Quiet, Text, Trust
from offmap.commands.thresholds import at_threshold, stated_rate
from offmap.outputs import require_writable


def evaluate(
    model: Model,
    normal: Annotated[str, typer.Option(help=f"Normal rows. {DATA_HELP}")],
    novel: Annotated[str, typer.Option(help="Novel rows, likewise.")],
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this .html file.")] = None,
    alpha: Alpha = None,
    budget: AlertBudget = None,
    text: Text = None,
    label: Label = None,
    entity: Entity = None,
    trust: Trust = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how well a model tells novel rows from normal ones."""
    if report is not None:
        require_writable(report, (".html", ".htm"), [str(model), normal, novel])
    require_present(model, normal, novel)
    from offmap.report import Report, write_report
    from offmap.workflow import evaluate_model, load_model

    with terminal.messages(quiet) as tell:
        loaded = at_threshold(load_model(model, trust or ()), stated_rate(alpha, budget))
        roles = roles_of(text, label, entity)
        known = open_rows(loaded, normal, roles, scoring=True)
        # Rows of no known class need no column of labels.
        unknown = open_rows(loaded, novel, roles, optional=["label"], scoring=True)
        section = evaluate_model(loaded, known, unknown, reasons=report is not None)
        if report is not None:
            facts = {"model": str(model), "normal rows": normal, "novel rows": novel}
            title = f"{section.name}: {normal} against {novel}"
            write_report(report, Report(title=title, sections=[section], facts=facts))
            tell(f"wrote {report}")
    terminal.show_pairs("Evaluation", section.metrics, as_json)
