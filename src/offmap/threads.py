"""How many cores torch works on, and how: all on one thing, or each on its own."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


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


def side_by_side(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Calls ``function`` with each item, on as many threads as torch has, one to a call; results come in order.

    Many small steps gain more from this than from sharing each among all threads, which must wait for one another.

    Example:
        >>> list(side_by_side(lambda item: (item, torch.get_num_threads()), range(3)))
        [(0, 1), (1, 1), (2, 1)]
    """
    count = torch.get_num_threads()
    with threads(1), ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        yield from pool.map(function, items)
