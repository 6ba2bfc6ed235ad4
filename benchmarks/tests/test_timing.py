"""Taking the time of a call."""

from offmap_bench.timing import timed


def test_a_call_is_made_once_and_takes_time() -> None:
    calls: list[int] = []
    assert timed(lambda: calls.append(1)) > 0
    assert calls == [1]
