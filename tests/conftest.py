"""Shared by all tests."""

import pytest
import torch
from hypothesis import settings

# The same examples in every run: a failure is a failure of the code, not of the day.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
# Several test processes on few cores: one thread each is faster than threads that wait for one another.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _plain_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of the command line come out the same whatever the terminal."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("NO_COLOR", "1")
