"""Rows from files to files: throughput beside scoring in memory, memory, and the overhead of Ray."""

from typing import Any

from offmap.density import MahalanobisDetector, VAEDetector
from offmap_bench.streams import cost_of, random_rows, rows_file, scratch
from offmap_bench.table import Table

SOURCE = "No paper: the speed of this toolkit"
MILLION = 1_000_000
ROWS = {"Mahalanobis": MahalanobisDetector(random_state=0), "VAE": VAEDetector(epochs=5, random_state=0)}


def measure_stream(method: Any, column: str, seed: int) -> dict[str, float]:
    """Rows per second from Parquet to Parquet, beside those of 10 million rows that are in memory already."""
    folder, millions = scratch(), int(column.split()[0])
    model, once = _fitted(method, seed), rows_file(folder, 10 * MILLION)
    stream = cost_of("threads", model, [once] * (millions // 10), folder / "scores.parquet").per(millions)
    memory = cost_of("memory", model, [once], folder / "unused").per(10)
    return {
        "rows / s": MILLION / stream.seconds,
        "share of memory's": memory.seconds / stream.seconds,
        "MB over the model": stream.megabytes,
        "CPU µs / row": stream.cpu_seconds,
        "in memory": memory.cpu_seconds,
        "cores": stream.cores,
        "cores in memory": memory.cores,
    }


def measure_ray(method: Any, column: str, seed: int) -> dict[str, float]:
    """Rows per second with Ray beside threads, with its start and without."""
    folder, millions = scratch(), int(column.split()[0])
    model, many = _fitted(method, seed), rows_file(folder, millions * MILLION)
    threads = cost_of("threads", model, [many], folder / "threads.parquet", workers=2).seconds
    ray = cost_of("ray", model, [many], folder / "ray.parquet", workers=2)
    if (folder / "ray.parquet").read_bytes() != (folder / "threads.parquet").read_bytes():
        raise RuntimeError("the scores of Ray differ from those of threads")
    scoring = ray.seconds - ray.actors
    return {
        "rows / s": millions * MILLION / scoring,
        "share of threads'": threads / scoring,
        "share with start": threads / (scoring + ray.start),
        "start / s": ray.start,
    }


def _fitted(method: Any, seed: int) -> Any:
    path = scratch() / f"{type(method).__name__}-{seed}.safetensors"
    method.set_params(random_state=seed).fit(random_rows(20_000, seed=1)).save(path)
    return path


STREAM = Table(
    name="scale-stream",
    source=SOURCE,
    caption="Rows of 20 features from Parquet to Parquet, in batches and on two cores.",
    rows=ROWS,
    columns=("10 million rows", "50 million rows"),
    metrics=(
        "rows / s",
        "share of memory's",
        "MB over the model",
        "CPU µs / row",
        "in memory",
        "cores",
        "cores in memory",
    ),
    measure=measure_stream,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"rows / s": ",.0f", "MB over the model": ".0f", "cores": ".1f", "cores in memory": ".1f"},
    notes="Everything is timed: reading and decoding 1.7 GB per 10 million rows, scoring, writing parts and the one "
    "file of all. Beside it stands `model.assess` of 10 million rows in a frame that is in memory already, which gives "
    "the same scores, p-values and decisions, with as many threads of torch as there are cores; `in memory` is its "
    "CPU µs / row. Both begin with the libraries and the model loaded, and follow each other in each seed. 50 million "
    "rows are the same file five times.",
)
RAY = Table(
    name="scale-ray",
    source=SOURCE,
    caption="Rows of 20 features from Parquet to Parquet with Ray on two CPUs, beside two threads.",
    rows=ROWS,
    columns=("10 million rows",),
    metrics=("rows / s", "share of threads'", "share with start", "start / s"),
    measure=measure_ray,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"rows / s": ",.0f", "start / s": ".1f"},
    notes="The start of Ray, of its two actors and of torch in them is what the first 1,000 rows take. Then Ray runs, "
    "and rates are without what another 1,000 rows take, which is the start of the actors. The files that both "
    "engines write are compared byte by byte.",
)
TABLES = (STREAM, RAY)
