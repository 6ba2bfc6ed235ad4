"""A service in a process of its own, to be measured, killed and started again."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from offmap.service import Limits, Settings
from offmap.service.server import serve

# One address sends everything here, which no rate limit expects.
LIMITS = Limits(rate=1e6, burst=1_000_000)
_SECONDS = 300


@dataclass(frozen=True)
class Service:
    """A service that runs.

    Args:
        port: Where it listens.
        process: Number of its process.
    """

    port: int
    process: int

    def kill(self) -> None:
        """Ends it as a power cut would."""
        os.kill(self.process, signal.SIGKILL)

    def resident_mib(self) -> float:
        """Memory that its process holds (Linux)."""
        lines = Path(f"/proc/{self.process}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


@contextmanager
def running(settings: Settings) -> Iterator[Service]:
    """Starts a service on a free port, and stops it at the end of the block.

    The process is forked from one that has imported everything, so that a hundred starts do not take an hour.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["offmap_bench.service_process"])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(settings, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(_SECONDS):
            raise RuntimeError("the service did not start")
        yield Service(int(ours.recv().rpartition(":")[2]), process.pid or 0)
    finally:
        process.terminate()
        process.join(_SECONDS)


def _run(settings: Settings, told: Connection) -> None:
    torch.set_num_threads(1)
    serve(settings, "127.0.0.1", 0, told.send)
