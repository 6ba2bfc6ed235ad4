"""How many cores torch works on, and how."""

from threading import get_ident
from time import sleep

import pytest
import torch

from offmap.threads import side_by_side, threads


def test_threads_are_given_back_whatever_happens() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), threads(before + 1):
        raise ZeroDivisionError
    assert torch.get_num_threads() == before


def test_one_core_is_given_back() -> None:
    before = torch.get_num_threads()
    with threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_calls_side_by_side_come_back_in_order_on_as_many_threads_as_torch_has() -> None:
    def slow(item: int) -> tuple[int, int, int]:
        # The first take longest, so that order is not there by chance.
        sleep(0.02 if item < 2 else 0.0)
        return item, get_ident(), torch.get_num_threads()

    with threads(2):
        found = list(side_by_side(slow, range(8)))
        assert torch.get_num_threads() == 2
    assert [item for item, _, _ in found] == list(range(8))
    assert {count for _, _, count in found} == {1}
    assert len({thread for _, thread, _ in found}) == 2


def test_an_error_of_one_call_reaches_the_caller_and_threads_are_given_back() -> None:
    before = torch.get_num_threads()

    def failing(item: int) -> float:
        return 1 / (item - 3)

    with pytest.raises(ZeroDivisionError):
        list(side_by_side(failing, range(6)))
    assert torch.get_num_threads() == before
