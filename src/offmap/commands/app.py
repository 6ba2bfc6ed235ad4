"""The command line: each command calls the library and prints what it returns.

Data goes to standard output, messages and progress bars to standard error. Exit codes: 0 all is well; 1 the work was
started and failed (training diverged, a benchmark's run failed, the disk is full); 2 wrong usage or bad input;
130 interrupted. Libraries are imported inside the commands, so that ``offmap --help`` answers at once.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from offmap.commands import terminal
from offmap.errors import WorkFailed

if TYPE_CHECKING:
    from offmap.data import Data
    from offmap.workflow import Estimator

EXIT_FAILED, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130
WRONG_PATHS = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)

app = typer.Typer(
    epilog="Exit codes: 0 success, 1 the work failed, 2 wrong usage or bad input, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON; a number that is not finite is null.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No messages, warnings or progress bars.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.", min=0)]
Text = Annotated[str | None, typer.Option(help="Column of the text, in a table.")]
Label = Annotated[str | None, typer.Option(help="Column of the label, in a table.")]
Entity = Annotated[str | None, typer.Option(help="Column of the entity (item, user, device) that the row belongs to.")]
Model = Annotated[Path, typer.Argument(help="A model that 'offmap fit' wrote.")]
DATA_HELP = "A file (.npz .npy .csv .tsv .parquet), a folder of images, or a data set's name, as fashion-mnist:test."


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


@app.command()
def methods(
    name: Annotated[str | None, typer.Argument(help="Show the parameters of this method.")] = None,
    as_json: Json = False,
) -> None:
    """List the methods, or the parameters of one."""
    from offmap import catalog

    if name is not None:
        terminal.show(f"Parameters of {name}", catalog.method(name).parameters(), as_json)
        return
    found = [{"method": each.name, "family": each.family, "summary": each.summary} for each in catalog.methods()]
    terminal.show("Methods", found, as_json)


@app.command()
def datasets(
    name: Annotated[str | None, typer.Argument(help="Show all that is known of this data set.")] = None,
    as_json: Json = False,
) -> None:
    """List the named data sets, or say of one where it is or how to get it."""
    from dataclasses import asdict

    from offmap.data import describe
    from offmap.data.registry import hint

    known = {listing.name: asdict(listing) for listing in describe()}
    if name is not None and name not in known:
        raise ValueError(f"there is no data set {name!r}; {hint(name)}")
    if name is not None:
        terminal.show_pairs(f"Data set {name}", known[name], as_json)
        return
    shown = ("name", "kind", "rows", "about", "found")
    short = [{key: listing[key] for key in shown} for listing in known.values()]
    terminal.show("Data sets", list(known.values()) if as_json else short, as_json)


@app.command()
def fit(
    method: Annotated[str, typer.Argument(help="A method's name; 'offmap methods' lists them.")],
    data: Annotated[str, typer.Argument(help=DATA_HELP)],
    out: Annotated[Path, typer.Option(help="Where to write the model, a .safetensors file.")],
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter, as name=value.")] = None,
    text: Text = None,
    label: Label = None,
    entity: Entity = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a method to data and save the model."""
    from offmap.workflow import configure, fit_model, promise_of, require_writable, summary_of

    with terminal.messages(quiet) as tell:
        require_writable(out, inputs=[data])
        estimator = configure(method, settings or [], seed)
        model = fit_model(estimator, _open(estimator, data, text, label, entity))
        model.save(out)
        tell(f"wrote {out}; {promise_of(model)}")
    terminal.show_pairs("Fitted", {"model": str(out), **summary_of(model)}, as_json)


@app.command()
def score(
    model: Model,
    data: Annotated[str, typer.Argument(help=DATA_HELP)],
    out: Annotated[Path | None, typer.Option(help="A .parquet or .csv file; CSV to standard output if absent.")] = None,
    text: Text = None,
    label: Label = None,
    entity: Entity = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score each row: novelty, p-value, and what the model makes of it."""
    from offmap.workflow import TABLE_SUFFIXES, load_model, require_writable, score_rows, write_frame

    with terminal.messages(quiet) as tell:
        if out is not None:
            require_writable(out, TABLE_SUFFIXES, [str(model), data])
        loaded = load_model(model)
        frame = score_rows(loaded, _open(loaded, data, text, label, entity))
        novel = int(frame["novel"].sum())
        if out is not None:
            write_frame(frame, out)
            tell(f"wrote {len(frame)} rows to {out}, {novel} of them novel")
    if out is not None and as_json:
        terminal.write(terminal.to_json({"out": str(out), "rows": len(frame), "novel": novel}))
    elif out is None and as_json:
        terminal.write_records(list(frame.columns), frame.itertuples(index=False, name=None))
    elif out is None:
        with terminal.standard_output() as stream:
            frame.to_csv(stream, index=False)


@app.command()
def evaluate(
    model: Model,
    normal: Annotated[str, typer.Option(help=f"Normal rows. {DATA_HELP}")],
    novel: Annotated[str, typer.Option(help="Novel rows, likewise.")],
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this .html file.")] = None,
    text: Text = None,
    label: Label = None,
    entity: Entity = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how well a model tells novel rows from normal ones."""
    from offmap.report import Report, write_report
    from offmap.workflow import evaluate_model, load_model, require_writable

    with terminal.messages(quiet) as tell:
        if report is not None:
            require_writable(report, (".html", ".htm"), [str(model), normal, novel])
        loaded = load_model(model)
        known = _open(loaded, normal, text, label, entity)
        section = evaluate_model(loaded, known, _open_novel(loaded, novel, text, label, entity))
        if report is not None:
            facts = {"model": str(model), "normal rows": normal, "novel rows": novel}
            title = f"{section.name}: {normal} against {novel}"
            write_report(report, Report(title=title, sections=[section], facts=facts))
            tell(f"wrote {report}")
    terminal.show_pairs("Evaluation", section.metrics, as_json)


@app.command()
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
    measured = [{"method": section.name, **section.metrics} for section in found.sections]
    whole = {"report": str(found.report), "seconds": found.seconds, "methods": measured}
    terminal.show(TITLE, table_of(found.sections), as_json, whole)


def _open(estimator: "Estimator", spec: str, text: str | None, label: str | None, entity: str | None) -> "Data":
    from offmap.collaborative.base import EntityDetector
    from offmap.data import open_data

    if label is not None and entity is not None:
        raise ValueError("--label and --entity must not both be given: a model learns classes or entities")
    opened = open_data(spec, text=text, label=label if entity is None else entity)
    if entity is not None and not isinstance(estimator, EntityDetector):
        raise ValueError(f"--entity must be left out: {type(estimator).__name__} knows no entities")
    return opened


def _open_novel(estimator: "Estimator", spec: str, text: str | None, label: str | None, entity: str | None) -> "Data":
    """Rows of no known class, which need no column of labels."""
    from offmap.data.tables import NoSuchColumn

    try:
        return _open(estimator, spec, text, label, entity)
    except NoSuchColumn:
        if label is None:
            raise
        return _open(estimator, spec, text, None, None)


def _stop(error: BaseException, code: int) -> NoReturn:
    if os.environ.get("OFFMAP_DEBUG"):
        raise error
    message = " ".join(str(error).split()) or type(error).__name__
    terminal.tell(f"offmap: {message}")
    sys.exit(code)
