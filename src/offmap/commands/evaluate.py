"""``offmap evaluate``: how well a model tells novel rows from normal ones."""

from pathlib import Path
from typing import Annotated

import typer

from offmap.commands import terminal
from offmap.commands.opening import open_novel, open_rows
from offmap.commands.options import DATA_HELP, Entity, Json, Label, Model, Quiet, Text, Trust


def evaluate(
    model: Model,
    normal: Annotated[str, typer.Option(help=f"Normal rows. {DATA_HELP}")],
    novel: Annotated[str, typer.Option(help="Novel rows, likewise.")],
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this .html file.")] = None,
    text: Text = None,
    label: Label = None,
    entity: Entity = None,
    trust: Trust = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how well a model tells novel rows from normal ones."""
    from offmap.report import Report, write_report
    from offmap.workflow import evaluate_model, load_model, require_writable

    with terminal.messages(quiet) as tell:
        if report is not None:
            require_writable(report, (".html", ".htm"), [str(model), normal, novel])
        loaded = load_model(model, trust or ())
        known = open_rows(loaded, normal, text, label, entity)
        section = evaluate_model(loaded, known, open_novel(loaded, novel, text, label, entity))
        if report is not None:
            facts = {"model": str(model), "normal rows": normal, "novel rows": novel}
            title = f"{section.name}: {normal} against {novel}"
            write_report(report, Report(title=title, sections=[section], facts=facts))
            tell(f"wrote {report}")
    terminal.show_pairs("Evaluation", section.metrics, as_json)
