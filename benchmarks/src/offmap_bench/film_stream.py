"""MovieLens as a stream: every user's films in the order they were rated, films becoming tasks on the way."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from offmap_bench.movielens import Ints, MovieLens

# The place in a user's history up to which each piece of the stream goes; the first piece is what a model starts from.
ENDS = (20, 40, 80, 160, 320, 10_000)
ENOUGH = 20


@dataclass(frozen=True)
class Piece:
    """What arrives in one piece of the stream.

    Args:
        end: The place in each user's history up to which it goes.
        fresh: Exposures that are taken in: new ones of known films, and all so far of films that now become tasks.
        so_far: All exposures of the films that are tasks now.
        films: The films that are tasks now.
    """

    end: int
    fresh: MovieLens
    so_far: MovieLens
    films: Ints


def replay(exposures: MovieLens) -> Iterator[Piece]:
    """Cuts exposures into pieces by their place in the users' histories.

    A film becomes a task when it has been shown 20 times, with all it was shown to until then.
    """
    known, start = np.empty(0, dtype=np.int64), 0
    for end in ENDS:
        past = (exposures.ranks > 0) & (exposures.ranks <= end)
        films, counts = np.unique(exposures.films[past], return_counts=True)
        tasks = films[counts >= ENOUGH]
        now = past & np.isin(exposures.films, tasks)
        fresh = now & ((exposures.ranks > start) | ~np.isin(exposures.films, known))
        yield Piece(end, exposures.only(fresh), exposures.only(now), tasks)
        known, start = tasks, end
