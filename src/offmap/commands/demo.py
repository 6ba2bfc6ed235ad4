"""``offmap demo``: the main job on bundled data."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from offmap.commands import terminal
from offmap.commands.options import Json, Quiet, Seed


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the report; made if it is not there.")] = Path("offmap-demo"),
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach the digits 0–6, meet 7–9, and see what is noticed."""
    from offmap.demo import TITLE, run, table_of

    with terminal.messages(quiet) as tell:
        found = run(out, seed, tell)
        tell(f"wrote {found.report} in {found.seconds:.0f} s")
        tell(found.turn.sentence)
    measured = [{"method": section.name, **section.metrics} for section in found.sections]
    whole = {"report": str(found.report), "seconds": found.seconds, "methods": measured, "loop": asdict(found.turn)}
    terminal.show(TITLE, table_of(found.sections), as_json, whole)
