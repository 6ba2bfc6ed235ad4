"""Text encoding in 8-bit integers beside torch: sentences per second, how close the vectors are, and what it costs."""

from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter, process_time
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from offmap.data import TextEncoder, known_classes, load
from offmap.metrics import open_set_summary
from offmap.openset import ANSClassifier, MSPClassifier
from offmap_bench.table import Table
from offmap_bench.tables.open_intents import SETS
from offmap_bench.timing import threads

SOURCE = "No paper: the speed of this toolkit"
Backend = Literal["torch", "onnx"]
_TIMED = 300
_ROUNDS = 3


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """A row of the table of speed: the backend."""

    backend: Backend


def measure_speed(method: Encoding, column: str, seed: int) -> dict[str, float]:
    """Encodes the same test sentences with the backend, without the cache, in the best of three rounds."""
    texts = _sentences(column, seed)
    encoder = TextEncoder(cache=False, backend=method.backend)
    vectors = encoder.transform(texts)
    with threads(1):
        clocks = [_clocked(encoder, texts) for _ in range(_ROUNDS)]
    wall, processor = (len(texts) / min(times) for times in zip(*clocks, strict=True))
    cosine = (vectors * _reference(column, seed)).sum(axis=1)
    found = {"sentences_per_second": wall, "sentences_per_processor_second": processor}
    return found | {"mean_cosine": float(cosine.mean()), "least_cosine": float(cosine.min())}


def _clocked(encoder: TextEncoder, texts: list[str]) -> tuple[float, float]:
    wall, processor = perf_counter(), process_time()
    encoder.transform(texts)
    return perf_counter() - wall, process_time() - processor


def _sentences(column: str, seed: int) -> list[str]:
    texts = np.asarray(load(SETS[column], "test").X, dtype=object)
    return [str(text) for text in np.random.default_rng(seed).choice(texts, _TIMED, replace=False)]


@lru_cache(maxsize=4)
def _reference(column: str, seed: int) -> NDArray[np.float32]:
    return TextEncoder().transform(_sentences(column, seed))


@dataclass(frozen=True, kw_only=True)
class Intents:
    """A row of the table of open intents: the method and the backend of its encoder."""

    method: Any
    backend: Backend


@lru_cache(maxsize=8)
def _embedded(name: str, split: str, backend: Backend) -> tuple[NDArray[Any], NDArray[Any]]:
    data = load(name, split)
    assert data.y is not None
    return TextEncoder(backend=backend).transform(data.X), data.y


def measure_intents(method: Intents, column: str, seed: int) -> dict[str, float]:
    """Fits the known classes and evaluates on the whole test set, with the vectors of one backend throughout."""
    name, ratio = SETS[column.rsplit(" ", 2)[0]], int(column.split()[-2]) / 100
    X, y = _embedded(name, "train", method.backend)
    X_test, y_test = _embedded(name, "test", method.backend)
    known = known_classes(y, ratio, seed)
    kept = np.isin(y, known)
    model = clone(method.method).set_params(random_state=seed).fit(X[kept], y[kept])
    found = open_set_summary(y_test, model.predict(X_test), known, model.unknown_label_)
    return {metric: found[metric] for metric in ("f1", "accuracy")}


_METHODS = {
    "ANS": ANSClassifier(rule="own", calibration=0.0),
    "MSP": MSPClassifier(rule="own", calibration=0.0),
}

_SPEED = ("sentences_per_second", "sentences_per_processor_second")
_COSINES = ("mean_cosine", "least_cosine")

TABLES = (
    Table(
        name="text-encoding",
        source=SOURCE,
        caption=f"{_TIMED} test sentences on one thread, tokenizing included; cosine with the vectors of torch.",
        rows={"torch": Encoding(backend="torch"), "onnx, 8-bit": Encoding(backend="onnx")},
        columns=tuple(SETS),
        metrics=(*_SPEED, *_COSINES),
        measure=measure_speed,
        seeds={"cpu": range(3), "paper": range(3)},
        profiles={"cpu": {}, "paper": {}},
        needs=tuple(SETS.values()),
        formats=dict.fromkeys(_SPEED, ".0f") | dict.fromkeys(_COSINES, ".4f"),
        higher_is_better=dict.fromkeys((*_SPEED, *_COSINES), True),
        notes="Sentences per processor second do not depend on what else the machine does.",
    ),
    Table(
        name="text-encoding-intents",
        source=SOURCE,
        caption="Open intents with the vectors of either backend, for training and for test rows.",
        rows={
            f"{name}, {backend}": Intents(method=method, backend=backend)
            for name, method in _METHODS.items()
            for backend in ("torch", "onnx")
        },
        columns=("BANKING 25 %", "BANKING 50 %", "BANKING 75 %"),
        metrics=("f1", "accuracy"),
        measure=measure_intents,
        seeds={"cpu": range(3), "paper": range(10)},
        profiles={"cpu": {}, "paper": {}},
        needs=("banking",),
        formats={"f1": ".2%", "accuracy": ".2%"},
        higher_is_better={"f1": True, "accuracy": True},
    ),
)
