"""Scores rows in worker threads: small requests that wait at the same time share a batch, and the queue is bounded."""

import asyncio
import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.calibration.conformal import attainable_rate
from offmap.collaborative.base import EntityDetector
from offmap.service.models import Loaded
from offmap.service.problems import Problem, busy
from offmap.service.rows import named
from offmap.service.settings import Limits
from offmap.verdict import Verdict
from offmap.workflow import Estimator
from offmap.workflow.entities import assess_entities

_LOG = logging.getLogger("offmap.service")
Told = Callable[[Loaded, Verdict, float], None]


@dataclass(frozen=True, eq=False)
class Job:
    """Rows of one request, the false-alarm rate if it is not the model's own, and the future of their verdict."""

    loaded: Loaded
    rows: Any
    entities: NDArray[Any] | None
    alpha: float | None
    future: asyncio.Future[Verdict]

    @property
    def kind(self) -> tuple[Any, ...]:
        """Jobs of one kind can be scored together; a job with a kind of its own is scored alone."""
        if self.entities is not None or not isinstance(self.rows, np.ndarray):
            return (self,)
        return self.loaded, self.alpha, self.rows.dtype.kind, self.rows.dtype.itemsize, self.rows.shape[1:]

    def assess(self) -> Verdict:
        """Scores the rows by themselves."""
        return assess(self.loaded, self.rows, self.entities, self.alpha)


def assess(loaded: Loaded, rows: Any, entities: NDArray[Any] | None, alpha: float | None) -> Verdict:
    """What a model says of rows, at its own rate or at ``alpha``; rows of entities that it does not know are novel."""
    model = loaded.model if alpha is None else _at(loaded.model, alpha)
    rows = named(model, rows)
    if isinstance(model, EntityDetector):
        return assess_entities(model, rows, required(entities), "flag")[0]
    return model.assess(rows)


def _at(model: Estimator, alpha: float) -> Estimator:
    """The model at another false-alarm rate; one that it cannot promise is refused, since a client sees no warning."""
    held_out = len(model.calibration_novelty_)
    least = attainable_rate(held_out, alpha, model.confidence)
    if held_out and least > alpha:
        enough = math.ceil(1000 * least) / 1000
        raise Problem(422, f"alpha must be at least {enough:g}: the model's {held_out} held-out rows promise no less")
    return model.at(alpha=alpha)


def required(entities: NDArray[Any] | None) -> NDArray[Any]:
    """The entities of a request, or a ``Problem`` if it names none."""
    if entities is None:
        raise Problem(422, "entities must name the entity of each row: this model asks what is unusual for one")
    return entities


class Scorer:
    """Threads that score what waits in a bounded queue.

    Args:
        limits: Length of the queue, rows per batch, threads, and how long a request may wait.
        told: Called with each batch's model, verdict and seconds.
    """

    def __init__(self, limits: Limits, told: Told) -> None:
        self._limits, self._told = limits, told
        self._jobs: deque[Job] = deque()
        self._ready, self._open = threading.Condition(), True
        self._threads = [
            threading.Thread(target=self._work, name=f"scorer-{number}", daemon=True)
            for number in range(limits.workers)
        ]
        for thread in self._threads:
            thread.start()

    async def score(
        self, loaded: Loaded, rows: Any, entities: NDArray[Any] | None = None, alpha: float | None = None
    ) -> Verdict:
        """The verdict on rows.

        Rows beyond a batch wait again for each further batch, so that one large request does not hold up small ones.

        Args:
            loaded: The model.
            rows: The rows.
            entities: The entity of each row, for models that ask for it.
            alpha: False-alarm rate, if not the model's own.
        """
        size, pieces = self._limits.batch_rows, []
        try:
            async with asyncio.timeout(self._limits.answer_seconds):
                for start in range(0, len(rows), size):
                    part = None if entities is None else entities[start : start + size]
                    pieces.append(await self._submit(loaded, _part(rows, start, size), part, alpha))
        except TimeoutError:
            raise busy(f"the rows were not scored within {self._limits.answer_seconds:g} s; send fewer") from None
        return pieces[0] if len(pieces) == 1 else joined(pieces)

    def _submit(
        self, loaded: Loaded, rows: Any, entities: NDArray[Any] | None, alpha: float | None
    ) -> asyncio.Future[Verdict]:
        job = Job(loaded, rows, entities, alpha, asyncio.get_running_loop().create_future())
        with self._ready:
            if not self._open:
                raise Problem(503, "the service is stopping; ask another instance, or try again later")
            if len(self._jobs) >= self._limits.queue:
                raise busy(f"{len(self._jobs)} requests wait to be scored; try again later")
            self._jobs.append(job)
            self._ready.notify()
        return job.future

    def close(self) -> None:
        """Scores what was accepted, then ends the threads."""
        with self._ready:
            self._open = False
            self._ready.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while batch := self._next_batch():
            start = perf_counter()
            results = _assessed(batch)
            seconds = perf_counter() - start
            batch[0].future.get_loop().call_soon_threadsafe(_resolve, batch, results)
            self._count(batch, results, seconds)

    def _count(self, batch: Sequence[Job], results: Sequence[Verdict | Exception], seconds: float) -> None:
        try:
            for job, result in zip(batch, results, strict=True):
                if isinstance(result, Verdict):
                    self._told(job.loaded, result, seconds)
        except Exception:  # a thread that ended here would leave every later request unanswered
            _LOG.exception("rows that were scored could not be counted")

    def _next_batch(self) -> list[Job]:
        """The job that waits longest, and those that can be scored with it; none when the service stops."""
        with self._ready:
            while True:
                self._ready.wait_for(lambda: self._jobs or not self._open)
                # Those who waited too long have left.
                waiting = [job for job in self._jobs if not job.future.cancelled()]
                self._jobs.clear()
                if waiting or not self._open:
                    break
            batch, rows = waiting[:1], sum(len(job.rows) for job in waiting[:1])
            for job in waiting[1:]:
                fits = job.kind == batch[0].kind and rows + len(job.rows) <= self._limits.batch_rows
                (batch if fits else self._jobs).append(job)
                rows += len(job.rows) if fits else 0
            return batch


def _assessed(batch: Sequence[Job]) -> list[Verdict | Exception]:
    """A verdict or an error for each job; if a batch fails, each job is tried alone, so that one cannot hurt others."""
    if len(batch) > 1:
        try:
            rows = np.concatenate([job.rows for job in batch])
            return _separated(assess(batch[0].loaded, rows, None, batch[0].alpha), [len(job.rows) for job in batch])
        except Exception:  # whatever it is, it comes again from the job that caused it
            pass
    results: list[Verdict | Exception] = []
    for job in batch:
        try:
            results.append(job.assess())
        except Exception as error:
            results.append(error)
    return results


def _resolve(batch: Sequence[Job], results: Sequence[Verdict | Exception]) -> None:
    for job, result in zip(batch, results, strict=True):
        # A client that has left cancelled its future.
        if job.future.done():
            continue
        if isinstance(result, Verdict):
            job.future.set_result(result)
        else:
            job.future.set_exception(result)


def _separated(verdict: Verdict, sizes: Sequence[int]) -> list[Verdict | Exception]:
    ends = np.cumsum(sizes).tolist()
    return [_sliced(verdict, slice(end - size, end)) for end, size in zip(ends, sizes, strict=True)]


def _sliced(verdict: Verdict, rows: slice) -> Verdict:
    values = {field.name: getattr(verdict, field.name) for field in fields(verdict)}
    parts: dict[str, Any] = {name: None if value is None else value[rows] for name, value in values.items()}
    return Verdict(**parts)


def joined(pieces: Sequence[Verdict]) -> Verdict:
    """One verdict of several, in their order."""
    columns = {field.name: [getattr(piece, field.name) for piece in pieces] for field in fields(Verdict)}
    whole: dict[str, Any] = {
        name: None if parts[0] is None else np.concatenate(parts) for name, parts in columns.items()
    }
    return Verdict(**whole)


def _part(rows: Any, start: int, size: int) -> Any:
    if len(rows) <= size:
        return rows
    return rows.iloc[start : start + size] if hasattr(rows, "iloc") else rows[start : start + size]
