"""Scores parts with actors of a Ray cluster, each of which loads the model once."""

from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from offmap.errors import WorkFailed, reason_of
from offmap.scale.job import Job
from offmap.scale.parts import Part, Position
from offmap.scale.ray_cluster import connected, ray_module
from offmap.scale.reading import Reading
from offmap.scale.scoring import score_part
from offmap.scale.threads import Scored
from offmap.workflow import Estimator

# Parts that an actor has waiting, so that it need not wait for the results to be written.
_AHEAD = 2
# How often a part is tried if its worker dies: a worker may be killed, but a part may also be what kills it.
_RETRIES = 3


class _PartScorer:
    """What an actor does: loads the model once and scores parts.

    The model is fetched with the first part and not given to the constructor: the constructor's arguments would be gone
    if Ray had to start the actor again.
    """

    def __init__(self) -> None:
        self.loaded: tuple[Estimator, Reading] | None = None

    def score(self, part: Part, references: list[Any]) -> pa.Table:
        """Scores a part; ``references`` are those of the model and of how its rows are read."""
        if self.loaded is None:
            shipped, reading = ray_module().get(references)
            self.loaded = shipped.load(), reading
        model, reading = self.loaded
        return score_part(model, part, reading)


def score_with_ray(
    job: Job, start: Position, workers: int | None, address: str | None
) -> Generator[Scored, None, None]:
    """Yields each part with its scores, in the order of the parts.

    Actors read the files themselves, so that every machine of the cluster must see them under the same path. A part
    whose worker dies is scored again by another.

    Args:
        job: What to score.
        start: Where to begin.
        workers: Actors; by default as many as the cluster has CPUs.
        address: Address of a running cluster; by default Ray is started on this machine.
    """
    ray = ray_module()
    with connected(address):
        count = workers or max(int(ray.cluster_resources().get("CPU", 1)), 1)
        made = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=_RETRIES)(_PartScorer)
        pool = _Pool([made.remote() for _ in range(count)], [ray.put(job.shipped), ray.put(job.reading)])
        with pool.running():
            for part in job.parts(start):
                pool.submit(part)
                if pool.is_full():
                    yield pool.first()
            while pool.waiting:
                yield pool.first()


class _Pool:
    """Actors, and the parts that they work on in order."""

    def __init__(self, actors: list[Any], references: list[Any]) -> None:
        self.ray = ray_module()
        self.actors, self.references = actors, references
        self.waiting: deque[tuple[Part, Any]] = deque()
        self.load: dict[Any, int] = {}

    def submit(self, part: Part) -> None:
        """Gives a part to the actor with the fewest parts."""
        busy = self._busy()
        actor = min(range(len(self.actors)), key=lambda place: busy.count(place))
        reference = self.actors[actor].score.remote(part, self.references)
        self.load[reference] = actor
        self.waiting.append((part, reference))

    def is_full(self) -> bool:
        """Whether enough parts are under way."""
        return len(self.waiting) >= _AHEAD * len(self.actors)

    def first(self) -> Scored:
        """Waits for the first of the parts."""
        part, reference = self.waiting.popleft()
        try:
            return part, self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, ValueError | OSError) else _failed(part, error) from None
        except self.ray.exceptions.RayError as error:
            raise _failed(part, error) from error
        finally:
            self.load.pop(reference)

    def _busy(self) -> list[int]:
        if not self.load:
            return []
        _, unready = self.ray.wait(list(self.load), num_returns=len(self.load), timeout=0, fetch_local=False)
        return [self.load[reference] for reference in unready]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Ends the actors with the block."""
        try:
            yield
        finally:
            for actor in self.actors:
                self.ray.kill(actor)


def _failed(part: Part, error: Exception) -> WorkFailed:
    rows = f"rows {part.at.row:,} to {part.at.row + part.rows - 1:,} of {part.file.path}"
    return WorkFailed(f"Ray could not score {rows}: {reason_of(error)}")
