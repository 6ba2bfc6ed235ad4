"""Progress bars on standard error, shown only on a terminal and not inside ``quiet``."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def quiet() -> Iterator[None]:
    """Hides all progress bars inside the block."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def is_shown() -> bool:
    """Whether a bar would be drawn: on a terminal, and neither inside ``quiet`` nor inside another bar."""
    return not _silent.get() and sys.stderr.isatty()


class Bar:
    """A running progress bar, or a silent one that draws nothing."""

    def __init__(self, progress: Progress | None, task: int = 0) -> None:
        self._progress = progress
        self._task = task

    def advance(self, steps: int = 1, note: str = "") -> None:
        """Advances the bar by ``steps`` and shows ``note`` beside it."""
        if self._progress is not None:
            self._progress.update(TaskID(self._task), advance=steps, note=note)


@contextmanager
def bar(label: str, total: int) -> Iterator[Bar]:
    """Shows a progress bar while the block runs. It is silent off the terminal and inside another bar.

    Args:
        label: Text before the bar.
        total: Number of steps.

    Example:
        >>> with bar("epochs", total=3) as shown:
        ...     shown.advance(note="loss 0.1")
    """
    if not is_shown():
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
        # rich would redirect printed data to the console of the bar, even if standard output is a file or a pipe.
        redirect_stdout=sys.stdout.isatty(),
    )
    # rich allows one live display at a time, so bars inside this one are silent.
    with quiet(), shown:
        yield Bar(shown, shown.add_task(label, total=total, note=""))
