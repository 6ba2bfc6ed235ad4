"""``offmap score``: from a model to scores."""

from pathlib import Path
from typing import Annotated

import typer

from offmap.commands import terminal
from offmap.commands.opening import open_rows, require_present, roles_of
from offmap.commands.options import (
    AlertBudget,
    Alpha,
    DataSpec,
    Entity,
    Explain,
    Json,
    Keep,
    Label,
    Model,
    NewEntityRule,
    Quiet,
    Reference,
    Text,
    Trust,
)
from offmap.commands.thresholds import at_threshold
from offmap.outputs import SCORE_SUFFIXES, json_line, require_writable


def score(
    model: Model,
    data: DataSpec,
    out: Annotated[
        Path | None, typer.Option(help="A .parquet, .csv or .jsonl file; CSV to standard output if absent.")
    ] = None,
    alpha: Alpha = None,
    budget: AlertBudget = None,
    top: Annotated[int | None, typer.Option(help="Only so many rows, the most novel first.", min=0)] = None,
    keep: Keep = None,
    new_entities: NewEntityRule = "flag",
    text: Text = None,
    label: Label = None,
    entity: Entity = None,
    explain: Explain = 0,
    reference: Reference = None,
    trust: Trust = None,
    as_json: Json = False,
    as_lines: Annotated[bool, typer.Option("--jsonl", help="Print one JSON object per line.")] = False,
    quiet: Quiet = False,
) -> None:
    """Score each row: novelty, p-value, and what the model makes of it."""
    if out is not None:
        require_writable(out, SCORE_SUFFIXES, [str(model), data])
    require_present(model, data)
    from offmap.cells import inert
    from offmap.data.tables import NoRows
    from offmap.workflow import load_model, no_scores, reasons_of, score_rows, write_frame

    with terminal.messages(quiet) as tell:
        loaded = at_threshold(load_model(model, trust or ()), alpha, budget)
        try:
            roles = roles_of(text, label, entity, keep=keep)
            opened = open_rows(loaded, data, roles, scoring=True)
            frame = score_rows(loaded, opened, new_entities=new_entities, top=top)
            if explain:
                normal = None if reference is None else open_rows(loaded, reference, roles, scoring=True)
                frame = frame.join(reasons_of(loaded, opened, normal, explain, frame["row"].tolist()), on="row")
        except NoRows as empty:
            frame = no_scores(loaded, list(empty.kept))
        novel = int(frame["novel"].sum())
        if out is not None:
            write_frame(frame, out)
            tell(f"wrote {len(frame)} rows to {out}, {novel} of them novel")
    if out is not None and as_json:
        terminal.write(terminal.to_json({"out": str(out), "rows": len(frame), "novel": novel}))
    elif out is None and as_json:
        terminal.write_records(list(frame.columns), frame.itertuples(index=False, name=None))
    elif out is None:
        names = list(frame.columns)
        with terminal.standard_output() as stream:
            if as_lines:
                stream.writelines(json_line(names, row) for row in frame.itertuples(index=False, name=None))
            else:
                inert(frame).to_csv(stream, index=False)
