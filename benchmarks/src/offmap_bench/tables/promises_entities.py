"""Whether the promise holds for rows of entities, by how many rows these have and which of them come back."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.collaborative import ClosedFormDetector, EntityForestDetector, RatioDetector, SeparateGaussianDetector
from offmap_bench.table import Table

ALPHA, ENTITIES, FRESH, SPLITS = 0.05, 150, 2000, 10
Sizes = tuple[NDArray[np.int64], NDArray[np.float64]]


def drawn_sizes(column: str, rng: np.random.Generator) -> Sizes:
    """The number of rows of each entity, and its share of the future rows."""
    even = np.ones(ENTITIES)
    match column:
        case "4 rows each":
            return np.full(ENTITIES, 4), even
        case "6 rows on average":
            return rng.poisson(6, ENTITIES), even
        case "some large":
            share = rng.lognormal(0, 1, ENTITIES)
            return rng.poisson(8 * share / share.mean()), share
        case "2 to 12, in proportion":
            sizes = rng.integers(2, 13, ENTITIES)
            return sizes, sizes.astype(np.float64)
        case _:
            return rng.integers(2, 13, ENTITIES), even


def measure(method: Any, column: str, seed: int) -> dict[str, float]:
    """The share of fresh rows of covered entities that is flagged, over some splits."""
    rates = [_rate(method, column, split) for split in range(SPLITS * seed, SPLITS * (seed + 1))]
    return {"rate": float(np.mean(rates))}


def _rate(method: Any, column: str, seed: int) -> float:
    rng = np.random.default_rng(seed)
    sizes, share = drawn_sizes(column, rng)
    centres = 3 * rng.normal(size=(ENTITIES, 3))
    entities = np.repeat(np.arange(ENTITIES), sizes)
    covered = np.where(sizes > 1, share, 0.0)
    later = rng.choice(ENTITIES, size=FRESH, p=covered / covered.sum())
    X, fresh = (centres[of] + rng.normal(size=(len(of), 3)) for of in (entities, later))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = method.set_params(alpha=ALPHA, calibration=0.2, random_state=seed).fit(X, entities)
        return float((model.novelty(fresh, later) > model.threshold_).mean())


ENTITY_RATES = Table(
    name="promises-entities",
    source="No paper: a benchmark of this toolkit",
    caption="Share of fresh normal rows of entities that are flagged at a promised rate of 0.05.",
    rows={
        "SeparateGaussianDetector": SeparateGaussianDetector(),
        "RatioDetector": RatioDetector(),
        "ClosedFormDetector": ClosedFormDetector(),
        "EntityForestDetector": EntityForestDetector(n_estimators=5),
    },
    columns=("4 rows each", "6 rows on average", "some large", "2 to 12, in proportion", "2 to 12, evenly"),
    metrics=("rate",),
    measure=measure,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"rate": ".1%"},
    notes="150 entities in three dimensions, each around a centre of its own; a fifth of the rows calibrates. One run "
    "is the mean of 10 splits. Numbers of rows are drawn from a Poisson distribution, with means of 6, or 8 times a "
    "log-normal share; fresh rows come from the entities with the same shares. With 2 to 12 rows the numbers are "
    "fixed, and fresh rows come in proportion to them or evenly. Entities of one row, not covered, get none.",
)
TABLES = (ENTITY_RATES,)
