"""Scores parts on all cores of this machine, with threads."""

import os
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context

import pyarrow as pa
import torch

from offmap.scale.parts import Part
from offmap.scale.reading import Reading
from offmap.scale.scoring import score_part
from offmap.workflow import Estimator

Scored = tuple[Part, pa.Table]
# Parts that are under way or wait to be written, per thread: threads need not wait while a part goes to the disk.
_AHEAD = 2


def score_in_threads(
    model: Estimator, reading: Reading, parts: Iterable[Part], workers: int
) -> Generator[Scored, None, None]:
    """Yields each part with its scores, in the order of the parts; few parts are held at once.

    Reading Parquet, NumPy and torch leave Python's lock, so that threads use all cores with one model in memory.
    """
    waiting: deque[tuple[Part, Future[pa.Table]]] = deque()
    with _one_thread_per_call(), ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            for part in parts:
                # With its context a thread knows of the progress bar that is shown already.
                waiting.append((part, pool.submit(copy_context().run, score_part, model, part, reading)))
                if len(waiting) > _AHEAD * workers:
                    yield _first(waiting)
            while waiting:
                yield _first(waiting)
        finally:
            for _, future in waiting:
                future.cancel()


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _first(waiting: deque[tuple[Part, Future[pa.Table]]]) -> Scored:
    part, future = waiting.popleft()
    return part, future.result()


@contextmanager
def _one_thread_per_call() -> Iterator[None]:
    """Keeps torch from starting threads of its own, which would wait for one another on cores that are busy.

    The number holds for the thread that sets it, so that each thread of a pool must set it too.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
