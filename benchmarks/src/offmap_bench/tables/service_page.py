"""The review page of a large world: how long it takes to show, and how long an act takes."""

import json
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.loop import OpenWorld
from offmap.openset import AnalyticClassifier
from offmap.service import Settings
from offmap_bench.service_client import Client
from offmap_bench.service_process import LIMITS, running
from offmap_bench.table import Table
from offmap_bench.tables.service import SOURCE
from offmap_bench.timing import timed

_WIDTH = 32


def blobs(centres: NDArray[np.float64], rows: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rows around each centre, in order."""
    return np.repeat(centres, rows, axis=0) + rng.normal(size=(len(centres) * rows, _WIDTH))


def measure(workload: Mapping[str, Any], column: str, seed: int) -> dict[str, float]:
    """Seconds of the first page and of the next ones, and milliseconds of an act; medians."""
    rng = np.random.default_rng(seed)
    known, new = rng.normal(scale=9, size=(10, _WIDTH)), rng.normal(scale=9, size=(workload["groups"], _WIDTH))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "large.world"
        with OpenWorld.create(place, classifier=AnalyticClassifier(calibration=0.3), seed=seed) as world:
            world.teach(blobs(known, 60, rng), np.repeat(np.arange(len(known)), 60))
            world.observe(blobs(new, workload["rows"] // workload["groups"], rng))
            world.groups()
        with running(Settings(worlds={"large": place}, limits=LIMITS)) as service:
            return _reviewed(Client(service.port), workload["acts"])


def _reviewed(client: Client, acts: int) -> dict[str, float]:
    first = timed(lambda: client.get("/review/large"))
    pages, decisions = [], []
    groups = json.loads(client.get("/v1/worlds/large/groups"))["groups"]
    for group in groups[:acts]:
        start = perf_counter()
        client.act("/v1/worlds/large/name", {"group": group["id"], "label": 1_000 + group["id"]})
        decisions.append(perf_counter() - start)
        pages.append(timed(lambda: client.get("/review/large")))
    client.close()
    return {
        "groups": len(groups),
        "rows": sum(group["size"] for group in groups),
        "first page s": first,
        "page s": statistics.median(pages),
        "act ms": 1e3 * statistics.median(decisions),
    }


TABLES = (
    Table(
        name="service-page",
        source=SOURCE,
        caption="The review page of a world in which 10,000 rows wait in 200 groups.",
        rows={"queue": {"rows": 10_000, "groups": 200, "acts": 20}},
        columns=("10,000 rows",),
        metrics=("groups", "rows", "first page s", "page s", "act ms"),
        measure=measure,
        seeds={"cpu": range(3)},
        profiles={"cpu": {}},
        formats={"groups": ",.0f", "rows": ",.0f", "act ms": ".1f"},
        notes="`first page` is the first request after the start, which reads every row from the disk; `page` is one "
        "after an act that changed the queue.",
    ),
)
