"""Runs a function in several processes that train together."""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from offmap.distributed import Processes, together

Work = Callable[..., Any]


def context() -> Any:
    """Processes are forked from one that has imported the library already."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["offmap.density", "offmap.collaborative", "offmap.openset", "tests.scale.processes"])
    return found


@contextmanager
def pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that wait for work."""
    with ProcessPoolExecutor(count, mp_context=context()) as processes:
        yield processes


def start(pool: ProcessPoolExecutor, count: int, folder: Path, work: Work, *arguments: Any) -> list[Future[Any]]:
    """Starts ``work(processes, *arguments)`` in ``count`` processes, which meet in a file of ``folder``."""
    meeting = folder / f"meeting-{len(list(folder.iterdir()))}"
    meeting.touch()
    address = f"file://{meeting}-point"
    return [pool.submit(work_at, f"{address}?rank={rank}&world_size={count}", work, arguments) for rank in range(count)]


def work_at(address: str, work: Work, arguments: tuple[Any, ...]) -> Any:
    """Does the work as the process that ``address`` says."""
    torch.set_num_threads(1)
    with together(address) as processes:
        return work(processes, *arguments)


def alone(work: Work, *arguments: Any) -> Any:
    """What ``work`` returns in this process."""
    return work(Processes(), *arguments)
