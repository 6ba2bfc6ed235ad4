"""What the service withstands: a crowd of clients, versions swapped under load, and kill -9."""

import asyncio
import http.client
import math
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from offmap.data import load
from offmap.density import MahalanobisDetector
from offmap.loop import OpenWorld
from offmap.openset import AnalyticClassifier
from offmap.service import Settings
from offmap_bench.service_client import Client, Tally, as_json, crowd
from offmap_bench.service_process import LIMITS, Service, running
from offmap_bench.table import Table
from offmap_bench.tables.service import SOURCE


def measure_crowd(workload: Mapping[str, Any], column: str, seed: int) -> dict[str, float]:
    """Answers, refusals and failures of many clients, with the service's memory before and after."""
    with tempfile.TemporaryDirectory() as folder:
        X = _versions(Path(folder), 1, seed)
        asked = as_json("digits", X[:1])
        with running(Settings(models={"digits": Path(folder)}, limits=LIMITS)) as service:
            asyncio.run(crowd(service.port, asked, workload["clients"], workload["seconds"] / 6))
            before = service.resident_mib()
            tally = asyncio.run(crowd(service.port, asked, workload["clients"], workload["seconds"]))
            return _tallied(tally) | {"MiB before": before, "MiB after": service.resident_mib()}


def measure_swaps(workload: Mapping[str, Any], column: str, seed: int) -> dict[str, float]:
    """Answers and failures while another version is put into use again and again."""
    swaps = 0
    with tempfile.TemporaryDirectory() as folder:
        X = _versions(Path(folder), 3, seed)
        with running(Settings(models={"digits": Path(folder)}, limits=LIMITS)) as service:
            end = time.perf_counter() + workload["seconds"]

            def swap() -> None:
                nonlocal swaps
                client = Client(service.port)
                while time.perf_counter() < end:
                    client.act("/v1/models/digits/use", {"version": str(swaps % 3 + 1)})
                    swaps += 1
                client.close()

            asked = as_json("digits", X[:16])
            tally = asyncio.run(crowd(service.port, asked, workload["clients"], workload["seconds"], swap))
    return _tallied(tally) | {"swaps": swaps}


def measure_kills(workload: Mapping[str, Any], column: str, seed: int) -> dict[str, float]:
    """Acts that were acknowledged before the service was killed, and how many of them a restart has lost."""
    digits = load("digits")
    acknowledged: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "digits.world"
        with OpenWorld.create(place, classifier=AnalyticClassifier(width=200, calibration=0.3), seed=seed) as world:
            world.teach(digits.X[:600], np.asarray(digits.y)[:600])
        for kill in range(workload["kills"]):
            with running(Settings(worlds={"digits": place}, limits=LIMITS)) as service:
                acknowledged += _act_until_killed(service, kill, acts=3 + kill % 10)
        with OpenWorld.open(place) as world:
            labels = {row.id: row.label for row in world.state.rows.values()}
    lost = [identity for identity in acknowledged if labels.get(identity) != 7]
    return {"kills": workload["kills"], "acknowledged": len(acknowledged), "lost": len(lost)}


def _act_until_killed(service: Service, kill: int, acts: int) -> list[str]:
    """Observes rows and labels them, one after another; ids whose label was acknowledged.

    The service is killed at a random moment soon after so many acts, while the next ones are on their way.
    """
    X, acknowledged = load("digits").X, list[str]()
    killer = threading.Timer(np.random.default_rng(kill).uniform(0, 0.02), service.kill)
    client = Client(service.port)
    try:
        while True:
            identity = f"{kill}-{len(acknowledged)}"
            rows = X[len(acknowledged) % len(X)][None].tolist()
            client.act("/v1/worlds/digits/observe", {"rows": rows, "ids": [identity]})
            client.act("/v1/worlds/digits/label", {"row": identity, "label": 7})
            acknowledged.append(identity)
            if len(acknowledged) == acts:
                killer.start()
    except (OSError, http.client.HTTPException):
        return acknowledged
    finally:
        client.close()


def _versions(folder: Path, count: int, seed: int) -> Any:
    """Versions of a model in a folder; returns rows to score."""
    X = np.asarray(load("digits").X, dtype=np.float64)
    MahalanobisDetector(random_state=seed).fit(X).save(folder / "1.safetensors")
    for version in range(2, count + 1):
        shutil.copy(folder / "1.safetensors", folder / f"{version}.safetensors")
    return X


def _tallied(tally: Tally) -> dict[str, float]:
    times = np.array(tally.seconds) if tally.seconds else np.array([math.nan])
    return {
        "answered": len(tally.seconds),
        "refused (429)": tally.refused,
        "failed": tally.failed,
        "p50 ms": 1e3 * float(np.median(times)),
        "p99 ms": 1e3 * float(np.quantile(times, 0.99)),
    }


_COUNTS = ("answered", "refused (429)", "failed")
TABLES = (
    Table(
        name="service-crowd",
        source=SOURCE,
        caption="Many clients at a time, each asking for the score of one digit again and again.",
        rows={"300 clients": {"clients": 300, "seconds": 60.0}},
        columns=("60 s",),
        metrics=(*_COUNTS, "p50 ms", "p99 ms", "MiB before", "MiB after"),
        measure=measure_crowd,
        seeds={"cpu": range(3)},
        profiles={"cpu": {}},
        formats={name: ",.0f" for name in (*_COUNTS, "MiB before", "MiB after")},
        notes="The queue holds 256 requests; a client that is refused waits as long as `Retry-After` says. Memory is "
        "that of the service's process, after ten seconds of the same load and after the minute.",
    ),
    Table(
        name="service-swaps",
        source=SOURCE,
        caption="Requests while another version is put into use without a pause.",
        rows={"16 clients": {"clients": 16, "seconds": 20.0}},
        columns=("20 s",),
        metrics=(*_COUNTS, "p50 ms", "p99 ms", "swaps"),
        measure=measure_swaps,
        seeds={"cpu": range(3)},
        profiles={"cpu": {}},
        formats={name: ",.0f" for name in (*_COUNTS, "swaps")},
    ),
    Table(
        name="service-kills",
        source=SOURCE,
        caption="Acts that were acknowledged before kill -9, and how many of them were lost.",
        rows={"observe and label": {"kills": 100}},
        columns=("100 restarts",),
        metrics=("kills", "acknowledged", "lost"),
        measure=measure_kills,
        seeds={"cpu": range(3)},
        profiles={"cpu": {}},
        formats={name: ",.0f" for name in ("kills", "acknowledged", "lost")},
        notes="Each restart is killed at a random moment after 3 to 12 acts, while the next ones are on their way. The "
        "world is in a folder.",
    ),
)
