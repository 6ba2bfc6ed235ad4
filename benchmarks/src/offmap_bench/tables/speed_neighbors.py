"""How fast the nearest of 100,000 rows is found."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors

from offmap.scores import KNearest, Outputs, scored
from offmap_bench.table import Table
from offmap_bench.tables.speed import SOURCE

ROWS, FEATURES, QUERIES = 100_000, 384, 1024


@dataclass(frozen=True, kw_only=True)
class Search:
    """Who searches.

    Args:
        ours: Offmap's batched products; else scikit-learn's brute force.
    """

    ours: bool


def measure(method: Any, column: str, seed: int) -> dict[str, float]:
    """Rows per second of a search for the nearest row, with as many threads as the column says."""
    rng = np.random.default_rng(seed)
    known, queries = (rng.standard_normal((rows, FEATURES)).astype(np.float32) for rows in (ROWS, QUERIES))
    threads = torch.get_num_threads()
    torch.set_num_threads(int(column.split()[0]))
    try:
        score = KNearest().fit(Outputs(torch.from_numpy(known))) if method.ours else None
        search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(known)
        start = perf_counter()
        if score is not None:
            scored(score, Outputs(torch.from_numpy(queries)))
        else:
            search.kneighbors(queries)
        return {"rows / s": QUERIES / (perf_counter() - start)}
    finally:
        torch.set_num_threads(threads)


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
TABLES = (NEIGHBORS,)
