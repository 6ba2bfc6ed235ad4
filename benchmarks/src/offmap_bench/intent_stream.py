"""A stream of intents, of which a quarter is known: what is taught, what comes, and rows to measure on."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.data import known_classes
from offmap_bench.tables.open_intents import SETS, embedded

# Training rows per class that are used; the test rows are all used.
ROWS_PER_CLASS = {"BANKING": 50, "CLINC": 40}


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows to teach, the stream in the order in which it comes, fresh rows drawn as it is, and the test split."""

    X_known: NDArray[Any]
    y_known: NDArray[Any]
    X: NDArray[Any]
    y: NDArray[Any]
    X_fresh: NDArray[Any]
    y_fresh: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]


@lru_cache(maxsize=2)
def stream(name: str, seed: int) -> Stream:
    """Three quarters of the rows of a quarter of the classes are taught; the stream has the others, in random order.

    Fresh rows are training rows beyond those that are used, so that they differ from the stream by chance alone.
    """
    X, y = embedded(SETS[name], "train")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    kept = np.concatenate([order[y[order] == label][: ROWS_PER_CLASS[name]] for label in np.unique(y)])
    known = np.isin(y[kept], known_classes(y, 0.25, seed))
    first = np.flatnonzero(known)
    taught = np.concatenate([part[: round(0.75 * len(part))] for part in _by_class(first, y[kept])])
    rest = rng.permutation(np.setdiff1d(np.arange(len(kept)), taught))
    known_rows, stream_rows, fresh = kept[taught], kept[rest], np.setdiff1d(order, kept)
    rows = (X[known_rows], y[known_rows], X[stream_rows], y[stream_rows], X[fresh], y[fresh])
    return Stream(*rows, *embedded(SETS[name], "test"))


def _by_class(places: NDArray[Any], y: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for label in np.unique(y[places]):
        yield places[y[places] == label]
