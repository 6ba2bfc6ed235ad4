"""Taking the time of a call."""

from collections.abc import Callable
from time import perf_counter


def timed(function: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    start = perf_counter()
    function()
    return perf_counter() - start
