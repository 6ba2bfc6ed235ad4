"""Taking the time of a call."""

import pytest
import torch

from offmap.bench.timing import threads, timed


def test_threads_are_given_back_whatever_happens() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), threads(before + 1):
        raise ZeroDivisionError
    assert torch.get_num_threads() == before


def test_a_call_is_made_once_and_takes_time() -> None:
    calls: list[int] = []
    assert timed(lambda: calls.append(1)) > 0
    assert calls == [1]


def test_one_core_is_given_back() -> None:
    before = torch.get_num_threads()
    with threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
