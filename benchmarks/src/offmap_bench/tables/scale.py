"""Rows from files to files: throughput beside scoring in memory, memory, and the overhead of Ray."""

from statistics import median
from typing import Any

from offmap.density import MahalanobisDetector, VAEDetector
from offmap_bench.streams import cost_of, random_rows, rows_file, scratch
from offmap_bench.table import Table

SOURCE = "No paper: the speed of this toolkit"
MILLION = 1_000_000
TURNS = 3
ROWS = {"Mahalanobis": MahalanobisDetector(random_state=0), "VAE": VAEDetector(epochs=5, random_state=0)}


def measure_stream(method: Any, column: str, seed: int) -> dict[str, float]:
    """Rows per second from Parquet to Parquet, beside those of 10 million rows that are in memory already, in turns."""
    folder, millions = scratch(), int(column.split()[0])
    model, once = _fitted(method, seed), rows_file(folder, 10 * MILLION)
    streams, memories = [], []
    for _ in range(TURNS):
        streams.append(cost_of("threads", model, [once] * (millions // 10), folder / "scores.parquet").per(millions))
        memories.append(cost_of("memory", model, [once], folder / "unused").per(10))
    pairs = zip(streams, memories, strict=True)
    return {
        "rows / s": MILLION / median(cost.seconds for cost in streams),
        "share of memory's": median(memory.seconds / stream.seconds for stream, memory in pairs),
        "MB over the model": max(cost.megabytes for cost in streams),
        "CPU µs / row": median(cost.cpu_seconds for cost in streams),
        "in memory": median(cost.cpu_seconds for cost in memories),
        "cores": median(cost.cores for cost in streams),
        "cores in memory": median(cost.cores for cost in memories),
    }


def measure_ray(method: Any, column: str, seed: int) -> dict[str, float]:
    """Rows per second with Ray beside threads, in turns, with its start and without."""
    folder, millions = scratch(), int(column.split()[0])
    model, many = _fitted(method, seed), rows_file(folder, millions * MILLION)
    threads, rays = [], []
    for _ in range(TURNS):
        threads.append(cost_of("threads", model, [many], folder / "threads.parquet", workers=2).seconds)
        rays.append(cost_of("ray", model, [many], folder / "ray.parquet", workers=2))
    if (folder / "ray.parquet").read_bytes() != (folder / "threads.parquet").read_bytes():
        raise RuntimeError("the scores of Ray differ from those of threads")
    actors = median(ray.actors for ray in rays)
    scoring = [ray.seconds - actors for ray in rays]
    whole = [seconds + ray.start for seconds, ray in zip(scoring, rays, strict=True)]
    return {
        "rows / s": millions * MILLION / median(scoring),
        "share of threads'": median(other / own for other, own in zip(threads, scoring, strict=True)),
        "share with start": median(other / own for other, own in zip(threads, whole, strict=True)),
        "start / s": median(ray.start for ray in rays),
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
    "CPU µs / row. Both begin with the libraries and the model loaded. Medians of three turns of both, and the median "
    "of the turns' ratios. 50 million rows are the same file five times.",
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
    "and rates are without what another 1,000 rows take, which is the start of the actors. Medians of three turns. The "
    "files that both engines write are compared byte by byte.",
)
TABLES = (STREAM, RAY)
