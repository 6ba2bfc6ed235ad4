"""Rows from files to files: throughput beside scoring in memory, memory, and the overhead of Ray."""

import shutil
from typing import Any

from offmap.density import MahalanobisDetector, VAEDetector
from offmap_bench.streams import cost_of, random_rows, rows_file, scratch
from offmap_bench.table import Table

SOURCE = "Scale"
MILLION = 1_000_000
ROWS = {"Mahalanobis": MahalanobisDetector(random_state=0), "VAE": VAEDetector(epochs=5, random_state=0)}


def measure_stream(method: Any, column: str, seed: int) -> dict[str, float]:
    """Rows per second from Parquet to Parquet, beside those of 10 million rows that are in memory already."""
    folder = scratch()
    model, once = _fitted(method, seed), rows_file(folder, 10 * MILLION)
    copies = int(column.split()[0]) // 10
    stream = cost_of("threads", model, [once] * copies, folder / "scores.parquet")
    memory = cost_of("memory", model, [once], folder / "unused")
    rate = 10 * copies / stream.seconds
    return {
        "rows / s": rate * MILLION,
        "share of memory's": rate * memory.seconds / 10,
        "MB over the model": stream.megabytes,
        "CPU µs / row": stream.cpu_seconds / (10 * copies),
        "in memory": memory.cpu_seconds / 10,
    }


def measure_ray(method: Any, column: str, seed: int) -> dict[str, float]:
    """Rows per second with Ray beside threads, with its start and without: the time that 1,000 rows take."""
    folder = scratch()
    model, rows = _fitted(method, seed), int(column.split()[0]) * MILLION
    many, few = rows_file(folder, rows), rows_file(folder, 1000)
    threads = cost_of("threads", model, [many], folder / "threads.parquet", workers=2)
    ray = cost_of("ray", model, [many], folder / "ray.parquet", workers=2)
    start = cost_of("ray", model, [few], folder / "few.parquet", workers=2)
    if (folder / "ray.parquet").read_bytes() != (folder / "threads.parquet").read_bytes():
        raise RuntimeError("the scores of Ray differ from those of threads")
    return {
        "rows / s": rows / (ray.seconds - start.seconds),
        "share of threads'": threads.seconds / (ray.seconds - start.seconds),
        "share with start": threads.seconds / ray.seconds,
        "start / s": start.seconds,
    }


def _fitted(method: Any, seed: int) -> Any:
    path = scratch() / f"{type(method).__name__}-{seed}.safetensors"
    method.set_params(random_state=seed).fit(random_rows(20_000, seed=1)).save(path)
    shutil.rmtree(scratch() / "scores.parquet.parts", ignore_errors=True)
    return path


STREAM = Table(
    name="scale-stream",
    source=SOURCE,
    caption="Rows of 20 features from Parquet to Parquet, in batches and on two cores.",
    rows=ROWS,
    columns=("10 million rows", "50 million rows"),
    metrics=("rows / s", "share of memory's", "MB over the model", "CPU µs / row", "in memory"),
    measure=measure_stream,
    seeds={"cpu": range(1)},
    profiles={"cpu": {}},
    formats={"rows / s": ",.0f", "MB over the model": ".0f"},
    notes="Everything is timed: reading and decoding 1.7 GB per 10 million rows, scoring, writing parts, joining them "
    "to one file. Beside it stands `model.assess` of 10 million rows in a frame that is in memory already, in the "
    "threads that torch takes; `in memory` is its CPU µs / row, which other work on the machine disturbs less than "
    "rows / s. 50 million rows are the same file five times.",
)
RAY = Table(
    name="scale-ray",
    source=SOURCE,
    caption="Rows of 20 features from Parquet to Parquet with Ray on two CPUs, beside two threads.",
    rows=ROWS,
    columns=("10 million rows",),
    metrics=("rows / s", "share of threads'", "share with start", "start / s"),
    measure=measure_ray,
    seeds={"cpu": range(1)},
    profiles={"cpu": {}},
    formats={"rows / s": ",.0f", "start / s": ".1f"},
    notes="The start of Ray, of its two actors and of torch in them is what 1,000 rows take; rates are without it. The "
    "files that both engines write are compared byte by byte.",
)
TABLES = (STREAM, RAY)
