"""What a command prints: data on standard output, as a table or as JSON; messages on standard error, or nowhere."""

import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TextIO

from offmap.errors import printable
from offmap.json_values import json_value
from offmap.progress import quiet as without_bars

if TYPE_CHECKING:
    import pandas as pd


def tell(message: str) -> None:
    """Says something to the user, who may be reading the data from standard output meanwhile."""
    print(printable(message), file=sys.stderr)


@contextmanager
def messages(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yields the function that tells the user something; if quiet, it is mute, as are warnings and progress bars.

    Example:
        >>> with messages(quiet=True) as tell:
        ...     tell("not printed")
    """
    with warnings.catch_warnings(), without_bars() if quiet else nullcontext():
        if not quiet:
            warnings.showwarning = _each_once()
            yield tell
            return
        warnings.simplefilter("ignore")
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            yield lambda message: None
        finally:
            logging.disable(before)


def _each_once() -> Callable[..., None]:
    """Tells a warning the first time only: a command that fits several models would say the same of each."""
    told: set[str] = set()

    def show(message: object, *details: object, **more: object) -> None:
        if str(message) not in told:
            told.add(str(message))
            tell(f"warning: {message}")

    return show


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Yields standard output; a reader that leaves early, as ``head`` does, has had what it wanted, and all is well."""
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer goes nowhere, so that the interpreter can close the stream without a complaint.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def write(text: str) -> None:
    """Writes text to standard output."""
    with standard_output() as stream:
        stream.write(text)


def write_records(names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Writes rows as a JSON array of objects, one a line, without ever holding all of them as text.

    Example:
        >>> write_records(["row", "novelty"], [(0, 0.25), (1, float("inf"))])
        [{"row": 0, "novelty": 0.25},
        {"row": 1, "novelty": null}]
    """
    with standard_output() as stream:
        stream.write("[")
        for number, row in enumerate(rows):
            record = json_value(dict(zip(names, row, strict=True)))
            stream.write(",\n" * (number > 0) + json.dumps(record, ensure_ascii=False, allow_nan=False))
        stream.write("]\n")


def write_table(frame: "pd.DataFrame", as_json: bool) -> None:
    """Writes a table to standard output: as a JSON array of objects, or as CSV that spreadsheets run nothing of."""
    from offmap.cells import inert

    if as_json:
        write_records(list(frame.columns), frame.itertuples(index=False, name=None))
        return
    with standard_output() as stream:
        inert(frame).to_csv(stream, index=False)


def to_json(value: Any) -> str:
    """The value as JSON; numbers that are not finite, for which JSON has no word, become null.

    Example:
        >>> to_json({"threshold": float("inf"), "rows": [1, 2.5]}).split()
        ['{', '"threshold":', 'null,', '"rows":', '[', '1,', '2.5', ']', '}']
    """
    return json.dumps(json_value(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def show(title: str, rows: Sequence[Mapping[str, Any]], as_json: bool, whole: Any = None) -> None:
    """Prints rows as a table, or as JSON (``whole`` in place of the rows if it is given)."""
    if as_json:
        write(to_json(rows if whole is None else whole))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(printable(title)), title_justify="left")
    for name in rows[0] if rows else ():
        table.add_column(Text(printable(name)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(_cell(value))) for value in row.values()))
    show_rich(table)


def show_pairs(title: str, pairs: Mapping[str, Any], as_json: bool) -> None:
    """Prints names and values as a table of two columns, without empty mappings, or all of them as one JSON object."""
    rows = [{"what": name, "value": value} for name, value in pairs.items() if value != {}]
    show(title, rows, as_json, dict(pairs))


def show_rich(renderable: Any) -> None:
    """Prints what rich can draw."""
    from rich.console import Console

    console = Console()
    with console.capture() as captured:
        console.print(renderable)
    write(captured.get())


def plain_words(text: str) -> str:
    r"""The text of a docstring for a terminal: formulas and code without their marks.

    Example:
        >>> plain_words(r"Weight $\lambda$ of ``X``; $\sqrt{2\,\mathrm{Tr}\,\Sigma_m}$ by default")
        'Weight lambda of X; sqrt(2 Tr Sigma_m) by default'
    """
    return re.sub(r"\$([^$]+)\$", lambda found: _formula(found[1]), text.replace("``", ""))


def _formula(source: str) -> str:
    """A short LaTeX formula in plain letters."""
    plain = re.sub(r"\\(mathrm|mathbf|mathbb|text|operatorname)\{([^}]*)\}", r"\2", source)
    plain = re.sub(r"\\[,;! ]", " ", plain)
    return plain.replace("\\", "").replace("{", "(").replace("}", ")")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_cell(item)}" for name, item in value.items())
    return ", ".join(map(_cell, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)
