"""The command line of the benchmarks, ``python -m offmap_bench``.

Results go to standard output, messages and progress bars to standard error. Exit codes: 0 success; 1 a run failed;
2 wrong usage or bad input; 130 interrupted.
"""

import os
import sys
from typing import Annotated, NoReturn

import typer

from offmap.commands import terminal
from offmap.commands.app import EXIT_BAD_INPUT, EXIT_FAILED, EXIT_INTERRUPTED, WRONG_PATHS
from offmap.errors import WorkFailed

PROGRAM = "python -m offmap_bench"

app = typer.Typer(
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Runs the command line. An error of the user is one line, not a traceback, unless OFFMAP_DEBUG is set."""
    try:
        app(prog_name=PROGRAM)
    except SystemExit as stop:
        if stop.code == EXIT_INTERRUPTED:
            terminal.tell("offmap_bench: interrupted")
        raise
    except (ValueError, ImportError, *WRONG_PATHS) as error:
        _stop(error, EXIT_BAD_INPUT)
    except (WorkFailed, OSError, MemoryError) as error:
        _stop(error, EXIT_FAILED)


@app.command(epilog="Exit codes: 0 success, 1 a run failed, 2 wrong usage or bad input, 130 interrupted.")
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Tables or figures, or the first words that several share ('speed'). Without a name, all are listed.",
        ),
    ] = None,
    profile: Annotated[
        str, typer.Option(help="'cpu' (sized for two cores) or 'paper' (the paper's protocol).")
    ] = "cpu",
    row: Annotated[list[str] | None, typer.Option(help="Run only this row; may be repeated.")] = None,
    column: Annotated[list[str] | None, typer.Option(help="Run only this column; may be repeated.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Repeat runs whose results are stored.")] = False,
    confirm: Annotated[
        bool,
        typer.Option(
            "--confirm",
            help="Measure one stored seed of each cell again; cells that come out again are marked with this "
            "commit, the others are measured anew.",
        ),
    ] = False,
    render: Annotated[bool, typer.Option("--render", help="Write docs/benchmarks.md and its pages.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; numbers that are not finite are null.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No messages, warnings or progress bars.")] = False,
) -> None:
    """Run tables and figures of the papers. Results that are stored are not measured again."""
    import offmap_bench
    from offmap_bench import places
    from offmap_bench.select import select, stored_cells

    places.require_repository()
    known = {item.name: item for item in offmap_bench.everything()}
    if not names and not render:
        listed = [{"name": item.name, "source": item.source, "shows": item.caption} for item in known.values()]
        terminal.show("Tables and figures", listed, as_json)
        return
    chosen = select(names or [], known)
    where = {"results": places.RESULTS, "figures": places.FIGURES}
    with terminal.messages(quiet) as tell:
        for name in chosen:
            tell(f"running {name}, profile {profile}")
            made = offmap_bench.make(name, profile, rows=row, columns=column, force=force, confirm=confirm, **where)
            if not as_json:
                terminal.show_rich(made)
        page = offmap_bench.render_all(places.RESULTS, places.PAGE) if render else None
        if page is not None:
            tell(f"wrote {page}")
    if as_json:
        cells = [cell for name in chosen for cell in stored_cells(known[name], profile, row, column, places.RESULTS)]
        terminal.write(terminal.to_json({"cells": cells, "page": None if page is None else str(page)}))


def _stop(error: BaseException, code: int) -> NoReturn:
    if os.environ.get("OFFMAP_DEBUG"):
        raise error
    message = " ".join(str(error).split()) or type(error).__name__
    terminal.tell(f"offmap_bench: {message}")
    sys.exit(code)
