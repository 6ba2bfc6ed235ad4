"""Taking the time of a call, on as many cores as are asked for."""

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
    """Holds torch to ``count`` threads inside the block.

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
