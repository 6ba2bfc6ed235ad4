"""What HTTP costs beside calling the library: throughput of batches, and the time that one row takes more."""

import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.data import load
from offmap.density import MahalanobisDetector
from offmap.openset import AnalyticClassifier
from offmap.service import Settings
from offmap_bench.service_client import Asked, Client, as_bytes, as_json, together
from offmap_bench.service_process import LIMITS, running
from offmap_bench.table import Table
from offmap_bench.timing import threads, timed

SOURCE = "No paper: the service of this toolkit"
FORMS: dict[str, Callable[[str, NDArray[Any]], Asked]] = {"JSON": as_json, "bytes": as_bytes}
BATCHES, ONE = "batches of 256", "one row"
_CLIENTS = 4


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A model that scores digits, asked over HTTP and called in this process, turn by turn.

    Args:
        model: The model.
        form: How rows are sent: "JSON" or "bytes".
        turns: How often each has its turn.
        batches: Batches per turn.
    """

    model: Any
    form: str
    turns: int = 11
    batches: int = 24


def measure(workload: Workload, column: str, seed: int) -> dict[str, float]:
    """Milliseconds of the library and over HTTP, and what follows from them; medians over the turns."""
    digits = load("digits")
    X = np.asarray(digits.X, dtype=np.float64)
    model = workload.model.set_params(random_state=seed)
    model = model.fit(X, np.asarray(digits.y)) if isinstance(model, AnalyticClassifier) else model.fit(X)
    with tempfile.TemporaryDirectory() as folder, threads(1):
        model.save(Path(folder) / "digits.safetensors")
        settings = Settings(models={"digits": Path(folder) / "digits.safetensors"}, limits=LIMITS)
        with running(settings) as service:
            clients = [Client(service.port) for _ in range(_CLIENTS)]
            try:
                compare = _batches if column == BATCHES else _single
                return compare(workload, model, X, clients)
            finally:
                for client in clients:
                    client.close()


def _batches(workload: Workload, model: Any, X: NDArray[Any], clients: list[Client]) -> dict[str, float]:
    rows = X[:256]
    asked = FORMS[workload.form]("digits", rows)
    together(clients, asked, _CLIENTS)
    library, remote = [], []
    for _ in range(workload.turns):
        library.append(timed(lambda: [model.assess(rows) for _ in range(workload.batches)]) / workload.batches)
        remote.append(timed(lambda: together(clients, asked, workload.batches)) / workload.batches)
    return _numbers(library, remote)


def _single(workload: Workload, model: Any, X: NDArray[Any], clients: list[Client]) -> dict[str, float]:
    asked = [FORMS[workload.form]("digits", X[place : place + 1]) for place in range(50)]
    library, remote = [], []
    for _ in range(workload.turns):
        for place, each in enumerate(asked):
            library.append(timed(lambda place=place: model.assess(X[place : place + 1])))  # type: ignore[misc] # bound now
            start = perf_counter()
            clients[0].ask(each)
            remote.append(perf_counter() - start)
    return _numbers(library, remote)


def _numbers(library: list[float], remote: list[float]) -> dict[str, float]:
    # Paired turn by turn: what slows the machine down for a while slows down both.
    ratio = statistics.median(ours / theirs for ours, theirs in zip(library, remote, strict=True))
    here, there = statistics.median(library), statistics.median(remote)
    return {"library ms": 1e3 * here, "HTTP ms": 1e3 * there, "HTTP / library": ratio, "added ms": 1e3 * (there - here)}


TABLES = (
    Table(
        name="service-scoring",
        source=SOURCE,
        caption="Scoring digits (64 numbers per row) over HTTP and by calling the library: milliseconds per request.",
        rows={
            "AnalyticClassifier, JSON": Workload(model=AnalyticClassifier(calibration=0.3), form="JSON"),
            "AnalyticClassifier, bytes": Workload(model=AnalyticClassifier(calibration=0.3), form="bytes"),
            "MahalanobisDetector, JSON": Workload(model=MahalanobisDetector(), form="JSON"),
            "MahalanobisDetector, bytes": Workload(model=MahalanobisDetector(), form="bytes"),
        },
        columns=(BATCHES, ONE),
        metrics=("library ms", "HTTP ms", "HTTP / library", "added ms"),
        measure=measure,
        seeds={"cpu": range(3)},
        profiles={"cpu": {}},
        notes="Client, service and library share one machine, one thread each. Batches come from four clients at a "
        "time, as a service meets them, so that one is read while another is scored; `HTTP / library` is the share of "
        "the throughput that is kept. One row comes from one client that waits for each answer. `bytes` is the binary "
        "extension of the Open Inference Protocol. MahalanobisDetector is the hardest case: to score a row takes it "
        "less time than any transport takes to bring it.",
    ),
)
