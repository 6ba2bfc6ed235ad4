"""How fast the nearest of 100,000 rows is found."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from offmap.scores import KNearest, Outputs, scored
from offmap_bench.table import Table
from offmap_bench.tables.speed import SOURCE

ROWS, FEATURES, QUERIES = 100_000, 384, 1024
Rows = NDArray[np.float32]
Algorithm = Literal["brute", "kd_tree"]


@dataclass(frozen=True, kw_only=True)
class Search:
    """Who searches.

    Args:
        ours: Offmap's batched products; else scikit-learn.
    """

    ours: bool


def _seconds(method: Search, known: Rows, queries: Rows, algorithm: Algorithm, clock: Callable[[], float]) -> float:
    """How long the search takes, once it is prepared."""
    score = KNearest().fit(Outputs(torch.from_numpy(known)))
    rival = None if method.ours else NearestNeighbors(n_neighbors=1, algorithm=algorithm).fit(known)
    start = clock()
    if rival is None:
        scored(score, Outputs(torch.from_numpy(queries)))
    else:
        rival.kneighbors(queries)
    return clock() - start


def _rate(
    method: Any, features: int, threads: int, algorithm: Algorithm, clock: Callable[[], float], seed: int
) -> dict[str, float]:
    """Rows per second of a search among rows of so many features, with so many threads of torch."""
    rng, before = np.random.default_rng(seed), torch.get_num_threads()
    known, queries = (rng.standard_normal((rows, features)).astype(np.float32) for rows in (ROWS, QUERIES))
    torch.set_num_threads(threads)
    try:
        return {"rows / s": QUERIES / _seconds(method, known, queries, algorithm, clock)}
    finally:
        torch.set_num_threads(before)


def measure(method: Any, column: str, seed: int) -> dict[str, float]:
    """Rows per second of a search for the nearest row, with as many threads as the column says."""
    return _rate(method, FEATURES, int(column.split()[0]), "brute", perf_counter, seed)


NEIGHBORS = Table(
    name="speed-neighbors",
    source=SOURCE,
    caption="Rows per second for which the nearest of 100,000 known rows of 384 features is found.",
    rows={"Offmap": Search(ours=True), "scikit-learn, brute force": Search(ours=False)},
    columns=("1 thread", "2 threads"),
    metrics=("rows / s",),
    measure=measure,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"rows / s": ",.0f"},
    higher_is_better={"rows / s": True},
    notes="1,024 queries, single precision, random directions. The products are 77 million operations per row, so "
    "the rate is that of the machine's matrix product; other work on the machine lowers it. scikit-learn's threads "
    "are not set by the column.",
)


def measure_index(method: Any, column: str, seed: int) -> dict[str, float]:
    """Rows per second of a search among rows of as many features as the column says, in one thread."""
    return _rate(method, int(column.split()[0]), 1, "kd_tree", process_time, seed)


INDEX = Table(
    name="speed-neighbors-index",
    source=SOURCE,
    caption="Rows per second for which the nearest of 100,000 known rows is found: products, and a k-d tree.",
    rows={"Offmap, products": Search(ours=True), "scikit-learn, k-d tree": Search(ours=False)},
    columns=("3 features", "8 features", "16 features", "32 features"),
    metrics=("rows / s",),
    measure=measure_index,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"rows / s": ",.0f"},
    higher_is_better={"rows / s": True},
    notes="1,024 queries, single precision, one thread, normal features; to build the tree is not counted. Seconds of "
    "the processor, which other work on the machine hardly changes.",
)
TABLES = (NEIGHBORS, INDEX)
