"""Calls side by side: in order, on one torch thread each, with few results held, and nothing changed afterwards."""

from collections.abc import Iterator
from contextvars import ContextVar
from threading import get_ident
from time import sleep

import pytest
import torch

from offmap.threads import one_thread, side_by_side, workers_for


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_one_thread_is_given_back_whatever_happens() -> None:
    with one_thread():
        assert torch.get_num_threads() == 1
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_come_in_order_each_from_one_torch_thread(workers: int) -> None:
    def slow(item: int) -> tuple[int, int, int]:
        # The first take longest, so that the order is not there by chance.
        sleep(0.05 if item < workers else 0.0)
        return item, get_ident(), torch.get_num_threads()

    found = list(side_by_side(slow, range(12), workers))
    assert [item for item, _, _ in found] == list(range(12))
    assert {count for _, _, count in found} == {1}
    assert len({thread for _, thread, _ in found}) == workers
    assert torch.get_num_threads() == 2


def test_few_results_are_held_at_once() -> None:
    called: list[int] = []
    results = side_by_side(lambda item: called.append(item), range(1000), workers=2)
    next(results)
    sleep(0.1)
    assert len(called) <= 6
    results.close()
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_reaches_the_caller_and_the_number_of_threads_is_as_before(workers: int) -> None:
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(lambda item: 1 / (item - 3), range(6), workers))
    assert torch.get_num_threads() == 2


def test_calls_see_the_context_of_the_caller() -> None:
    colour = ContextVar("colour", default="grey")
    colour.set("red")
    assert list(side_by_side(lambda _: colour.get(), range(3), workers=2)) == ["red"] * 3


def test_threads_are_started_for_several_calls_on_a_cpu_only() -> None:
    assert [workers_for(calls, device) for calls, device in ((3, "cpu"), (4, "cpu"), (100, "cuda"))] == [1, 2, 1]
