"""How fast detectors of many entities score, add entities and train, and how much memory an entity takes."""

import pickle
import statistics
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest

from offmap.collaborative import ClosedFormDetector, RatioDetector
from offmap_bench.table import Table
from offmap_bench.timing import threads, timed

SOURCE = "No paper: the speed of this toolkit"
FEATURES = 100
PAIRS = {"1,000 users × 1,000 items": (1_000, 1_000), "6,000 users × 167 items": (6_000, 167)}
ENTITIES = {"1,000 entities": 1_000, "100,000 entities": 100_000}
GROWTH = {"100 entities": 100, "1,000 entities": 1_000, "10,000 entities": 10_000}
ROWS = 50_000
# Rows of the entity that is added, and how often adding is measured.
NEW, TURNS = 50, 200


def rows_of_entities(entities: int, count: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Rows around one point per entity, which differ in the first ten features."""
    rng = np.random.default_rng(seed)
    ids = np.arange(count) % entities
    X = rng.standard_normal((count, FEATURES), dtype=np.float32)
    X[:, :10] += rng.standard_normal((entities, 10), dtype=np.float32)[ids]
    return X, ids


def measure_scoring(method: Any, column: str, seed: int) -> dict[str, float]:
    """Seconds for the whole matrix of a million pairs, and for the same pairs as a list."""
    users, items = PAIRS[column]
    X, ids = rows_of_entities(items, 20 * items, seed)
    method.set_params(random_state=seed).fit(X, ids)
    people, _ = rows_of_entities(items, users, seed + 1)
    rows, columns = np.divmod(np.arange(users * items), items)
    with threads(1):
        method.familiarity(people[:100])
        start = perf_counter()
        method.familiarity(people)
        matrix = perf_counter()
        method.novelty(people, columns, rows=rows)
        pairs = perf_counter()
    return {"seconds, matrix": matrix - start, "seconds, list of pairs": pairs - matrix}


def measure_adding(method: Any, column: str, seed: int) -> dict[str, float]:
    """Milliseconds of ``add_entity`` with 50 rows, and of ``partial_fit`` with one, at so many entities."""
    entities = ENTITIES[column]
    X, ids = rows_of_entities(1_000, 20_000, seed)
    method.set_params(random_state=seed).fit(X, ids)
    fill(method, entities, seed)
    new, _ = rows_of_entities(1, NEW * TURNS, seed + 1)
    with threads(1):
        adding = [timed(partial(method.add_entity, 10**9 + i, new[i * NEW : (i + 1) * NEW])) for i in range(TURNS)]
        stream = [timed(partial(method.partial_fit, new[i : i + 1], [10**9 + i])) for i in range(TURNS)]
    return {
        "ms, add_entity": 1e3 * statistics.median(adding),
        "ms, add_entity, slowest of 200": 1e3 * max(adding),
        "ms, partial_fit of one row": 1e3 * statistics.median(stream),
    }


def fill(method: Any, entities: int, seed: int) -> None:
    """Adds entities of twenty rows each until there are so many."""
    while len(method.entity_ids_) < entities:
        known = len(method.entity_ids_)
        fresh = min(5_000, entities - known)
        X, ids = rows_of_entities(fresh, 20 * fresh, seed + known)
        method.partial_fit(X, ids + known)


def measure_training(method: Any, column: str, seed: int) -> dict[str, float]:
    """Seconds to fit 50,000 rows of so many entities."""
    X, ids = rows_of_entities(GROWTH[column], ROWS, seed)
    with threads(1):
        return {"seconds": timed(lambda: method.set_params(random_state=seed).fit(X, ids))}


def measure_memory(method: Any, column: str, seed: int) -> dict[str, float]:
    """Bytes per entity of a saved model: those of its tensors, or of a pickled forest."""
    X, ids = rows_of_entities(1_000, 50 * 1_000, seed)
    if isinstance(method, IsolationForest):
        sizes = [len(pickle.dumps(method.fit(X[ids == entity]))) for entity in range(5)]
        return {"bytes per entity": statistics.fmean(sizes)}
    method.set_params(random_state=seed).fit(X, ids)
    state = method.entities_.state_dict()
    return {
        "bytes per entity": sum(value.numel() * value.element_size() for value in state.values())
        / len(method.entities_)
    }


def brief(cls: Any, **parameters: Any) -> Any:
    """A detector that makes one pass over the rows, or as many as are asked for, without early stopping."""
    return cls(**{"epochs": 1, "patience": None, "calibration": 0.0, **parameters})


MIXTURE = {"head": "mixture", "embedding_size": 32, "hidden": (128, 64)}
CONCAT = {"head": "concat", "embedding_size": 16, "hidden": (32, 32, 16), "dropout": (0.5, 0.5, 0.3)}
TOWERS = {"head": "two_tower", "embedding_size": 32, "hidden": (128, 64)}
SCORING = Table(
    name="speed-collaborative-scoring",
    source=SOURCE,
    caption="Familiarity of a million pairs of a user and an item, on one core.",
    rows={
        "ratio, mixture": brief(RatioDetector, **MIXTURE),
        "ratio, concat": brief(RatioDetector, **CONCAT),
        "ratio, two towers": brief(RatioDetector, **TOWERS),
        "closed form": brief(ClosedFormDetector, hidden=(128, 64)),
    },
    columns=tuple(PAIRS),
    metrics=("seconds, matrix", "seconds, list of pairs"),
    measure=measure_scoring,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"seconds, matrix": ".3f", "seconds, list of pairs": ".3f"},
    notes="Users have 100 features. The matrix is `familiarity`; the list is `novelty` with `rows`, which makes the "
    "features of a user once. Concat is the perceptron of the paper, 116-32-32-16-1.",
)
ADDING = Table(
    name="speed-collaborative-adding",
    source=SOURCE,
    caption="Milliseconds to add an entity of 50 rows, and to take in one more row, on one core.",
    rows={
        "closed form": brief(ClosedFormDetector, hidden=(128, 64)),
        "ratio, mixture": brief(RatioDetector, **MIXTURE),
        "ratio, two towers": brief(RatioDetector, **TOWERS),
    },
    columns=tuple(ENTITIES),
    metrics=("ms, add_entity", "ms, add_entity, slowest of 200", "ms, partial_fit of one row"),
    measure=measure_adding,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"ms, add_entity": ".2f", "ms, add_entity, slowest of 200": ".1f", "ms, partial_fit of one row": ".2f"},
    notes="Medians of 200 calls, checks of the input included. The slowest call may be one that grows the table. "
    "`ratio, mixture` has the head of the default.",
)
TRAINING = Table(
    name="speed-collaborative-training",
    source=SOURCE,
    caption="Seconds to fit 50,000 rows, five passes, by number of entities.",
    rows={
        "ratio, mixture": brief(RatioDetector, epochs=5, **MIXTURE),
        "ratio, concat": brief(RatioDetector, epochs=5, **CONCAT),
        "ratio, two towers": brief(RatioDetector, epochs=5, **TOWERS),
        "closed form": brief(ClosedFormDetector, epochs=5, hidden=(128, 64)),
    },
    columns=tuple(GROWTH),
    metrics=("seconds",),
    measure=measure_training,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"seconds": ".1f"},
    notes="One core. A step moves only the embeddings of the entities in its batch. Two towers end with a solve for "
    "the embedding of each entity, which is the part that grows.",
)
MEMORY = Table(
    name="speed-collaborative-memory",
    source=SOURCE,
    caption="Bytes per entity of 50 rows.",
    rows={
        "ratio, mixture": brief(RatioDetector, **MIXTURE),
        "ratio, concat": brief(RatioDetector, **CONCAT),
        "ratio, two towers": brief(RatioDetector, **TOWERS),
        "closed form": brief(ClosedFormDetector, hidden=(128, 64)),
        "an isolation forest each": IsolationForest(random_state=0),
    },
    columns=("1,000 entities",),
    metrics=("bytes per entity",),
    measure=measure_memory,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"bytes per entity": ",.0f"},
    notes="For our detectors what the table of entities holds: id, embedding, count, level. For the forest, that of "
    "scikit-learn with its defaults, what it takes pickled, as one would keep it.",
)
TABLES = (SCORING, ADDING, TRAINING, MEMORY)
