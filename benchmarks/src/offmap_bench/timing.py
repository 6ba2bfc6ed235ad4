"""Measuring how long calls take."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

import torch


def timed(function: Callable[[], object]) -> float:
    """Calls ``function`` once and returns the seconds it took."""
    start = perf_counter()
    function()
    return perf_counter() - start


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Sets the number of torch threads for the block, so that two methods are timed under the same conditions.

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
