"""The command line: each command calls the library and prints what it returns.

Data goes to standard output, messages and progress bars to standard error. Exit codes: 0 all is well; 1 the work was
started and failed (training diverged, a benchmark's run failed, the disk is full); 2 wrong usage or bad input;
130 interrupted. Libraries are imported inside the commands, so that ``offmap --help`` answers at once.
"""

import os
import sys
from typing import Annotated, NoReturn

import typer

from offmap.commands import terminal
from offmap.commands.compare import compare
from offmap.commands.demo import demo
from offmap.commands.entities import add, remove, update
from offmap.commands.evaluate import evaluate
from offmap.commands.explain import explain
from offmap.commands.export import export
from offmap.commands.fit import fit
from offmap.commands.info import info
from offmap.commands.listing import datasets, methods
from offmap.commands.monitor import monitor
from offmap.commands.recalibrate import recalibrate
from offmap.commands.score import score
from offmap.commands.serve import serve
from offmap.commands.world import app as world
from offmap.errors import WorkFailed, reason_of

EXIT_FAILED, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130
WRONG_PATHS = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)

app = typer.Typer(
    epilog="Exit codes: 0 success, 1 the work failed, 2 wrong usage or bad input, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Runs the command line; a user's error is one line, not a traceback (unless OFFMAP_DEBUG is set)."""
    try:
        app(prog_name="offmap")
    except SystemExit as stop:
        if stop.code == EXIT_INTERRUPTED:
            terminal.tell("offmap: interrupted")
        raise
    except (ValueError, ImportError, *WRONG_PATHS) as error:
        _stop(error, EXIT_BAD_INPUT)
    except (WorkFailed, OSError, MemoryError) as error:
        _stop(error, EXIT_FAILED)


def _show_version(wanted: bool) -> None:
    if wanted:
        from offmap import __version__

        terminal.write(f"offmap {__version__}\n")
        raise typer.Exit


@app.callback()
def offmap(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Open-world learning: find what a model was never taught."""


COMMANDS = (
    *(methods, datasets, fit, score, explain, evaluate, compare, info, monitor, recalibrate),
    *(add, update, remove, export, serve, demo),
)
for command in COMMANDS:
    app.command()(command)
app.add_typer(world, name="world")


def _stop(error: BaseException, code: int) -> NoReturn:
    if os.environ.get("OFFMAP_DEBUG"):
        raise error
    # One of several that torchrun has started says which it is.
    process = f" process {os.environ['RANK']}:" if "RANK" in os.environ else ""
    terminal.tell(f"offmap:{process} {reason_of(error)}")
    sys.exit(code)
