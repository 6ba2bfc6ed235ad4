"""The queue of scoring: batches give the same bytes, a full queue refuses, one bad request hurts nobody."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import offmap
from offmap.service import Limits
from offmap.service.models import Loaded
from offmap.service.problems import Problem
from offmap.service.scorer import Scorer
from offmap.verdict import Verdict
from tests.service.conftest import WIDTH


class Slow:
    """A model that waits until it is let go, and remembers the sizes of its batches."""

    def __init__(self, model: Any) -> None:
        self.model, self.go, self.busy, self.sizes = model, threading.Event(), threading.Event(), list[int]()

    def assess(self, rows: Any) -> Verdict:
        self.sizes.append(len(rows))
        self.busy.set()
        assert self.go.wait(60)
        verdict: Verdict = self.model.assess(rows)
        return verdict


@pytest.fixture
def slow(files: Path) -> Slow:
    return Slow(offmap.load(files / "numbers.safetensors"))


async def started(scorer: Scorer, loaded: Loaded, slow: Slow, rows: list[Any]) -> list[asyncio.Task[Verdict]]:
    """Requests, of which the first is being scored and the others wait."""
    tasks = [asyncio.create_task(scorer.score(loaded, rows[0]))]
    await asyncio.sleep(0)
    assert await asyncio.to_thread(slow.busy.wait, 60)
    for other in rows[1:]:
        tasks.append(asyncio.create_task(scorer.score(loaded, other)))
    await asyncio.sleep(0)
    return tasks


def test_waiting_requests_share_a_batch_and_get_their_own_rows(slow: Slow) -> None:
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(size, WIDTH)) for size in (1, 2, 3, 1, 8)]
    told: list[int] = []

    async def run() -> list[Verdict]:
        scorer = Scorer(Limits(batch_rows=8), lambda loaded, verdict, seconds: told.append(len(verdict)))
        tasks = await started(scorer, Loaded("m", "1", slow), slow, rows)  # type: ignore[arg-type]
        slow.go.set()
        found = await asyncio.gather(*tasks)
        scorer.close()
        return found

    found = asyncio.run(run())
    assert slow.sizes == [1, 6, 8]
    assert sorted(told) == [1, 1, 2, 3, 8]
    for given, verdict in zip(rows, found, strict=True):
        expected = slow.model.assess(given)
        np.testing.assert_array_equal(verdict.novelty, expected.novelty)
        np.testing.assert_array_equal(verdict.p_value, expected.p_value)


def test_large_requests_are_scored_piece_by_piece(slow: Slow) -> None:
    rows = np.random.default_rng(0).normal(size=(20, WIDTH))
    slow.go.set()

    async def run() -> Verdict:
        scorer = Scorer(Limits(batch_rows=8), lambda *told: None)
        found = await scorer.score(Loaded("m", "1", slow), rows)  # type: ignore[arg-type]
        scorer.close()
        return found

    np.testing.assert_array_equal(asyncio.run(run()).novelty, slow.model.novelty(rows))
    assert slow.sizes == [8, 8, 4]


def test_a_full_queue_and_a_stopping_service_refuse(slow: Slow) -> None:
    rows = np.zeros((1, WIDTH))

    async def run() -> None:
        scorer = Scorer(Limits(queue=2), lambda *told: None)
        loaded = Loaded("m", "1", slow)  # type: ignore[arg-type]
        tasks = await started(scorer, loaded, slow, [rows, rows, rows])
        with pytest.raises(Problem, match="wait to be scored") as full:
            await scorer.score(loaded, rows)
        assert (full.value.status, full.value.headers) == (429, {"Retry-After": "1"})
        closing = asyncio.create_task(asyncio.to_thread(scorer.close))
        await asyncio.sleep(0.05)
        with pytest.raises(Problem, match="stopping") as stopping:
            await scorer.score(loaded, rows)
        assert stopping.value.status == 503
        slow.go.set()
        # What was accepted is answered, although the service stops.
        assert [len(verdict) for verdict in await asyncio.gather(*tasks)] == [1, 1, 1]
        await closing

    asyncio.run(run())


def test_one_bad_request_in_a_batch_hurts_no_other(slow: Slow) -> None:
    good, bad = np.zeros((1, WIDTH)), np.full((1, WIDTH), np.nan)

    async def run() -> list[Any]:
        scorer = Scorer(Limits(), lambda *told: None)
        tasks = await started(scorer, Loaded("m", "1", slow), slow, [good, bad, good])  # type: ignore[arg-type]
        slow.go.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        scorer.close()
        return list(found)

    first, second, third = asyncio.run(run())
    assert isinstance(second, ValueError)
    assert len(first) == len(third) == 1


def test_a_request_that_waits_too_long_is_told_so_and_not_scored(slow: Slow) -> None:
    rows = np.zeros((1, WIDTH))

    async def run() -> None:
        scorer = Scorer(Limits(answer_seconds=0.2), lambda *told: None)
        tasks = await started(scorer, Loaded("m", "1", slow), slow, [rows, rows])  # type: ignore[arg-type]
        for task in tasks:
            with pytest.raises(Problem, match=r"not scored within 0\.2 s"):
                await task
        slow.go.set()
        await asyncio.to_thread(scorer.close)

    asyncio.run(run())
    assert slow.sizes == [1]


def test_counting_that_fails_leaves_nobody_without_an_answer(slow: Slow, caplog: pytest.LogCaptureFixture) -> None:
    slow.go.set()

    def told(*arguments: object) -> None:
        raise RuntimeError("no counter")

    async def run() -> int:
        scorer = Scorer(Limits(), told)
        loaded = Loaded("m", "1", slow)  # type: ignore[arg-type]
        found = [await scorer.score(loaded, np.zeros((1, WIDTH))) for _ in range(3)]
        await asyncio.to_thread(scorer.close)
        return len(found)

    assert asyncio.run(run()) == 3
    assert "no counter" in caplog.text
