"""Taking the time of a call."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

import torch


def timed(function: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    start = perf_counter()
    function()
    return perf_counter() - start


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Runs the block with ``count`` torch threads, so that two methods are timed alike.

    Example:
        >>> with threads(1):
        ...     torch.get_num_threads()
        1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
