"""The command line: each command calls one library function.

Data goes to standard output, messages and progress bars to standard error. Exit codes: 0 all is well; 1 the work was
started and failed (training diverged, a benchmark's run failed); 2 wrong usage or bad input; 130 interrupted.
Libraries are imported inside the commands, so that ``offmap --help`` answers at once.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from offmap.progress import quiet as without_bars

if TYPE_CHECKING:
    from offmap.data import Data
    from offmap.report import Section

EXIT_FAILED, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130

app = typer.Typer(
    help="Open-world learning: find what a model was never taught.",
    epilog="Exit codes: 0 success, 1 the work failed, 2 wrong usage or bad input, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No messages and no progress bars.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.", min=0)]
Text = Annotated[str | None, typer.Option(help="Column of the text.")]
Label = Annotated[str | None, typer.Option(help="Column of the label.")]
ReportOut = Annotated[Path | None, typer.Option("--report", help="Write an HTML report here.")]
DATA_HELP = "A file (.npz .npy .csv .tsv .parquet), a folder of images, or a data set's name, as fashion-mnist:test."


def main() -> None:
    """Runs the command line; a user's error is one line, not a traceback (unless OFFMAP_DEBUG is set)."""
    from offmap.errors import WorkFailed

    try:
        app()
    except KeyboardInterrupt:
        _stop("interrupted", EXIT_INTERRUPTED)
    except WorkFailed as error:
        _stop(str(error), EXIT_FAILED)
    except (ValueError, OSError, ImportError) as error:
        if os.environ.get("OFFMAP_DEBUG"):
            raise
        _stop(str(error), EXIT_BAD_INPUT)


@app.command()
def methods(
    name: Annotated[str | None, typer.Argument(help="Show the parameters of this method.")] = None,
    as_json: Json = False,
) -> None:
    """List the methods, or the parameters of one."""
    from offmap import catalog

    if name is None:
        found = [{"method": m.name, "family": m.family, "summary": m.summary} for m in catalog.methods()]
        _show("Methods", found, as_json)
    else:
        _show(f"Parameters of {name}", catalog.method(name).parameters(), as_json)


@app.command()
def datasets(as_json: Json = False) -> None:
    """List the named data sets, and where each is or how to get it."""
    from dataclasses import asdict

    from offmap.data import describe

    listed = [asdict(listing) for listing in describe()]
    shown = ("name", "kind", "rows", "about", "where")
    _show("Data sets", listed if as_json else [{key: line[key] for key in shown} for line in listed], as_json)


@app.command()
def fit(
    method: Annotated[str, typer.Argument(help="A method's name; 'offmap methods' lists them.")],
    data: Annotated[str, typer.Argument(help=DATA_HELP)],
    out: Annotated[Path, typer.Option(help="Where to write the model.")],
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter, as name=value.")] = None,
    text: Text = None,
    label: Label = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a method to data and save the model."""
    from offmap.workflow import fit_model

    with _bars(quiet):
        _writable(out)
        model = fit_model(method, _open(data, text, label), settings or [], seed)
        model.save(out)
    last = {term: values[-1] for term, values in model.history_.items()}
    _tell(f"wrote {out}", quiet)
    summary = {"model": str(out), "method": method, "threshold": float(model.threshold_), **last}
    _show("Fitted", [{"what": key, "value": value} for key, value in summary.items()], as_json, plain=summary)


@app.command()
def score(
    model: Annotated[Path, typer.Argument(help="A model that 'offmap fit' wrote.")],
    data: Annotated[str, typer.Argument(help=DATA_HELP)],
    out: Annotated[Path | None, typer.Option(help="A .parquet or .csv file; standard output if not given.")] = None,
    text: Text = None,
    label: Label = None,
    quiet: Quiet = False,
) -> None:
    """Score each row: novelty, p-value, and what the model makes of it."""
    from offmap.persist import load
    from offmap.workflow import score_rows, write_frame

    with _bars(quiet):
        frame = score_rows(load(model), _open(data, text, label))
    if out is None:
        frame.to_csv(sys.stdout, index=False)
    else:
        write_frame(frame, out)
        _tell(f"wrote {len(frame)} rows to {out}", quiet)


@app.command()
def evaluate(
    model: Annotated[Path, typer.Argument(help="A model that 'offmap fit' wrote.")],
    normal: Annotated[str, typer.Option(help=f"Normal rows. {DATA_HELP}")],
    novel: Annotated[str, typer.Option(help="Novel rows, likewise.")],
    report: ReportOut = None,
    text: Text = None,
    label: Label = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how well a model tells novel rows from normal ones."""
    from offmap.persist import load
    from offmap.report import Report, write_report
    from offmap.workflow import evaluate_model

    with _bars(quiet):
        section = evaluate_model(load(model), _open(normal, text, label), _open(novel, text, label))
    if report is not None:
        facts = {"model": str(model), "normal rows": normal, "novel rows": novel}
        write_report(report, Report(title=f"{section.name}: {normal} against {novel}", sections=[section], facts=facts))
        _tell(f"wrote {report}", quiet)
    rows = [{"metric": metric, "value": value} for metric, value in section.metrics.items()]
    _show("Evaluation", rows, as_json, plain=dict(section.metrics))


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("offmap-demo"),
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach the digits 0–6, meet 7–9, and see what is noticed."""
    from offmap.demo import run

    with _bars(quiet):
        found = run(out, seed, tell=lambda message: _tell(message, quiet))
    rows = [_demo_row(section) for section in found.sections]
    _show("Digits 0–6 are known; 7, 8 and 9 appear at test time only", rows, as_json)
    _tell(f"wrote {found.report} in {found.seconds:.0f} s", quiet)


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Tables and figures; none lists them.")] = None,
    profile: Annotated[str, typer.Option(help="'cpu' (minutes) or 'paper' (the paper's protocol).")] = "cpu",
    row: Annotated[list[str] | None, typer.Option(help="Only this row.")] = None,
    column: Annotated[list[str] | None, typer.Option(help="Only this column.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Measure again what was measured before.")] = False,
    render: Annotated[bool, typer.Option("--render", help="Write docs/benchmarks.md from the results.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run tables of the papers, going on where the last run stopped."""
    from offmap import bench as library

    if not names and not render:
        listed = [{"name": item.name, "source": item.source, "shows": item.caption} for item in library.everything()]
        _show("Tables and figures", listed, as_json=False)
    with _bars(quiet):
        for name in names or []:
            _tell(f"running {name}, profile {profile}", quiet)
            made = library.make(name, profile, rows=row, columns=column, force=force)
            Console().print(made)
    if render:
        _tell(f"wrote {library.render_all()}", quiet)


def _open(spec: str, text: str | None, label: str | None) -> "Data":
    from offmap.data import open_data

    return open_data(spec, text=text, label=label)


def _writable(path: Path) -> None:
    """Finds out before the work, not after it, that its result cannot be written."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"--out: the folder {path.parent} does not exist")


def _demo_row(section: "Section") -> dict[str, Any]:
    columns = ("known accuracy", "recall of novel rows", "false-alarm rate, measured", "false-alarm rate, promised")
    return {"method": section.name} | {name: section.metrics.get(name) for name in (*columns, "AUROC")}


def _bars(quiet: bool) -> Any:
    return without_bars() if quiet else nullcontext()


def _tell(message: str, quiet: bool) -> None:
    if not quiet:
        Console(stderr=True, highlight=False).print(escape(message))


def _stop(message: str, code: int) -> None:
    print(f"offmap: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


def _show(title: str, rows: Iterable[Mapping[str, Any]], as_json: bool, plain: Any = None) -> None:
    """Prints rows as a table, or as JSON (``plain`` in place of the rows if it is given)."""
    rows = list(rows)
    if as_json:
        print(json.dumps(rows if plain is None else plain, indent=2, default=str))
        return
    table = Table(title=title, title_justify="left", header_style="bold")
    for name in rows[0] if rows else ():
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(escape(_cell(value)) for value in row.values()))
    Console().print(table)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item:,}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)
