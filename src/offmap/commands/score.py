"""``offmap score``: from a model to scores, in memory or from files to files."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from offmap.commands import terminal
from offmap.commands.opening import open_rows, require_entity_role, require_present, roles_of
from offmap.commands.options import (
    AlertBudget,
    AlphaOrAuto,
    Entity,
    Explain,
    Json,
    Keep,
    Known,
    Label,
    Model,
    NewEntityRule,
    Quiet,
    Reference,
    Text,
    Trust,
)
from offmap.commands.streaming import EngineName, RayAddress, Resume, RowData, Stream, Workers
from offmap.commands.thresholds import AUTO, at_threshold, stated_rate
from offmap.outputs import json_lines, require_scores_out

if TYPE_CHECKING:
    import pandas as pd

    from offmap.data import Data
    from offmap.data.roles import Roles
    from offmap.workflow import Estimator


@dataclass(frozen=True)
class _Table:
    """What is computed of rows that are all in memory."""

    new_entities: Any
    top: int | None
    explain: int
    reference: str | None
    alpha: Any
    known: str | None

    def of(self, model: "Estimator", data: str, roles: "Roles", tell: Callable[[str], None]) -> "pd.DataFrame":
        """The scores of the rows, and the reasons if they are wanted."""
        from offmap.data.tables import NoRows
        from offmap.workflow import assess_with_known, at_suggested_rate, no_scores, reasons_of, score_rows

        try:
            opened = open_rows(model, data, roles, scoring=True)
            verdict = suggested = None
            if self.known is not None:
                known = open_rows(model, self.known, roles, scoring=True)
                verdict, suggested = assess_with_known(model, opened, known, alpha=self.alpha)
            elif self.alpha == AUTO:
                model, suggested = at_suggested_rate(model, opened)
            else:
                model = at_threshold(model, self.alpha)
            if suggested is not None:
                tell(str(suggested))
            frame = score_rows(model, opened, new_entities=self.new_entities, top=self.top, verdict=verdict)
            if self.new_entities != "add" and (said := _about_new(model, opened)):
                tell(said)
            if self.explain:
                normal = None if self.reference is None else open_rows(model, self.reference, roles, scoring=True)
                return _with_reasons(frame, reasons_of(model, opened, normal, self.explain, frame["row"].tolist()))
            return frame
        except NoRows as empty:
            return no_scores(model, list(empty.kept))


def score(
    model: Model,
    data: RowData,
    out: Annotated[
        Path | None,
        typer.Option(help="A .parquet, .csv or .jsonl file, or a folder; CSV to standard output if absent."),
    ] = None,
    alpha: AlphaOrAuto = None,
    budget: AlertBudget = None,
    top: Annotated[int | None, typer.Option(help="Only so many rows, the most novel first.", min=0)] = None,
    keep: Keep = None,
    new_entities: NewEntityRule = "flag",
    text: Text = None,
    label: Label = None,
    entity: Entity = None,
    explain: Explain = 0,
    reference: Reference = None,
    known: Known = None,
    resume: Resume = False,
    engine: EngineName = "threads",
    workers: Workers = None,
    ray_address: RayAddress = None,
    trust: Trust = None,
    as_json: Json = False,
    as_lines: Annotated[bool, typer.Option("--jsonl", help="Print one JSON object per line.")] = False,
    quiet: Quiet = False,
) -> None:
    """Score each row: novelty, p-value, and what the model makes of it.

    Parquet, CSV and TSV files and folders of them are read and written in batches if --out is given, so that they need
    not fit in memory.
    """
    stream = Stream(resume=resume, engine=engine, workers=workers, ray_address=ray_address)
    beside = [spec for spec in (known, reference) if spec is not None]
    if out is not None:
        require_scores_out(out, [str(model), data, *beside])
    _require_used(reference, explain, as_json, as_lines, out)
    require_present(model, data, *beside)
    from offmap.workflow import load_model, write_frame
    from offmap.workflow.entities import about_new_rows

    with terminal.messages(quiet) as tell:
        rate = stated_rate(alpha, budget)
        whole = top is not None or bool(explain) or new_entities == "add" or rate == AUTO or known is not None
        in_batches = stream.serves(data, out, whole)
        loaded = load_model(model, trust or ())
        _require_entities(loaded, new_entities)
        roles = roles_of(text, label, entity, keep=keep)
        if in_batches:
            assert out is not None
            require_entity_role(loaded, roles)
            done = stream.run(at_threshold(loaded, rate), data, out, roles, new_entities, trust or ())
            rows, novel = done.rows, done.novel
            if done.new:
                tell(about_new_rows(done.new, done.read))
        else:
            table = _Table(new_entities, top, explain, reference, rate, known)
            frame = table.of(loaded, data, roles, tell)
            rows, novel = len(frame), int(frame["novel"].sum())
            if out is None:
                return _print(frame, as_json, as_lines)
            write_frame(frame, out)
        tell(f"wrote {rows} rows to {out}, {novel} of them novel")
    if as_json:
        terminal.write(terminal.to_json({"out": str(out), "rows": rows, "novel": novel}))


def _about_new(model: "Estimator", data: "Data") -> str:
    """What to say of rows whose entities the model does not know; "" if there are none."""
    from offmap.collaborative.base import EntityDetector
    from offmap.workflow.entities import about_new_entities
    from offmap.workflow.fitting import entities_of

    return about_new_entities(model, entities_of(model, data)) if isinstance(model, EntityDetector) else ""


def _with_reasons(frame: "pd.DataFrame", reasons: "pd.DataFrame") -> "pd.DataFrame":
    """The scores and the reasons beside them; a kept column of the same name gets the prefix ``input_``."""
    from offmap.data.roles import names_beside

    return frame.set_axis(names_beside(frame.columns, set(reasons.columns)), axis=1).join(reasons, on="row")


def _require_used(reference: str | None, explain: int, as_json: bool, as_lines: bool, out: Path | None) -> None:
    """Refuses options that would have no effect."""
    if reference is not None and not explain:
        raise ValueError("--reference is what explanations compare with; add --explain, or leave it out")
    if as_lines and as_json:
        raise ValueError("give either --json or --jsonl")
    if as_lines and out is not None:
        raise ValueError("--jsonl prints to standard output; for a file of JSON lines, give --out a name in .jsonl")


def _require_entities(model: "Estimator", new_entities: str) -> None:
    """Refuses a rule for unknown entities where the model knows none."""
    from offmap.collaborative.base import EntityDetector

    if new_entities != "flag" and not isinstance(model, EntityDetector):
        raise ValueError(f"--new-entities is for models of entities; a {type(model).__name__} knows none")


def _print(frame: "pd.DataFrame", as_json: bool, as_lines: bool) -> None:
    if not as_lines:
        return terminal.write_table(frame, as_json)
    with terminal.standard_output() as stream:
        stream.writelines(json_lines(frame))
