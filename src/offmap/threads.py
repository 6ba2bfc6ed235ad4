"""Torch on one thread per call, with as many calls side by side as torch has threads.

Threads that share one small product wait for one another at every step, which takes long on a busy machine; and wide
products round differently on another number of threads.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")
# Calls that are under way or whose results wait, per thread: no thread waits while the caller uses a result.
_AHEAD = 2
# Short calls for which threads are worth starting.
_SEVERAL = 4


@contextmanager
def one_thread() -> Iterator[None]:
    """Keeps torch from starting threads of its own for the calls of this thread.

    Torch has a number of threads per thread, and one that new threads start with. Both are restored.

    Example:
        >>> with one_thread():
        ...     torch.get_num_threads()
        1
    """
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def workers_for(calls: int, device: str) -> int:
    """How many of so many short calls to make at a time: as many as torch has threads, or one if they are few.

    Example:
        >>> workers_for(2, "cpu"), workers_for(1000, "cpu") == torch.get_num_threads()
        (1, True)
    """
    return torch.get_num_threads() if calls >= _SEVERAL and torch.device(device).type == "cpu" else 1


def side_by_side(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Generator[Result, None, None]:
    """Yields what ``function`` returns for each item, in the order of the items; few results are held at once.

    Args:
        function: What to call, on one torch thread; it should spend its time outside Python's lock.
        items: What to call it with.
        workers: Number of calls at a time; 1 calls it in this thread.

    Example:
        >>> list(side_by_side(lambda item: (item, torch.get_num_threads()), range(3), workers=2))
        [(0, 1), (1, 1), (2, 1)]
    """
    if workers == 1:
        for item in items:
            with one_thread():
                found = function(item)
            yield found
        return
    waiting: deque[Future[Result]] = deque()
    with one_thread(), ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            for item in items:
                # With its context a thread knows of the progress bar that is shown already.
                waiting.append(pool.submit(copy_context().run, function, item))
                if len(waiting) > _AHEAD * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
