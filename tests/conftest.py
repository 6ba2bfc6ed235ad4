"""Shared by all tests."""

import warnings

import pytest
import torch

# Several test processes on few cores: one thread each is faster than threads that wait for one another.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _plain_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of the command line come out the same whatever the terminal."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("NO_COLOR", "1")


with warnings.catch_warnings():
    # Imported here once: a dependency's import-time deprecation is not ours to fail on.
    warnings.simplefilter("ignore")
    import pandas  # noqa: F401
