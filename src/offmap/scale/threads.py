"""Scores parts on all cores of this machine, with threads."""

import os
from collections.abc import Generator, Iterable

import pyarrow as pa

from offmap.scale.parts import Part
from offmap.scale.reading import Reading
from offmap.scale.scoring import score_part
from offmap.threads import side_by_side
from offmap.workflow import Estimator

Scored = tuple[Part, pa.Table]


def score_in_threads(
    model: Estimator, reading: Reading, parts: Iterable[Part], workers: int
) -> Generator[Scored, None, None]:
    """Yields each part with its scores, in the order of the parts; few parts are held at once.

    Reading Parquet, NumPy and torch leave Python's lock, so that threads use all cores with one model in memory.
    """

    def scored(part: Part) -> Scored:
        return part, score_part(model, part, reading)

    return side_by_side(scored, parts, workers)


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
