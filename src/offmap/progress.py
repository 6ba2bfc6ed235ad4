"""Progress bars: on a terminal only, on standard error, and never when quiet."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def quiet() -> Iterator[None]:
    """Hides every progress bar of the block."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


class Bar:
    """One running bar: ``advance`` it, with a note beside it if there is something to say."""

    def __init__(self, progress: Progress | None, task: int = 0) -> None:
        self._progress = progress
        self._task = task

    def advance(self, steps: int = 1, note: str = "") -> None:
        """Moves the bar on by ``steps``."""
        if self._progress is not None:
            self._progress.update(TaskID(self._task), advance=steps, note=note)


@contextmanager
def bar(label: str, total: int) -> Iterator[Bar]:
    """Shows a bar of ``total`` steps while the block runs; a silent one off the terminal or inside another bar.

    Example:
        >>> with bar("epochs", total=3) as shown:
        ...     shown.advance(note="loss 0.1")
    """
    if _silent.get() or not sys.stderr.isatty():
        yield Bar(None)
        return
    shown = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=Console(stderr=True),
        transient=True,
        # rich sends what is printed meanwhile to the console of the bar, where data for a file or a pipe must not go.
        redirect_stdout=sys.stdout.isatty(),
    )
    # rich allows one live display at a time: what runs inside this bar reports through it alone.
    with quiet(), shown:
        yield Bar(shown, shown.add_task(label, total=total, note=""))
