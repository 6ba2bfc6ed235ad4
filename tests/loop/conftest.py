"""Shared by the tests of the loop."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from offmap.loop import OpenWorld
from tests.loop.worlds import blobs, taught


@pytest.fixture
def world(tmp_path: Path) -> Iterator[OpenWorld]:
    """A world with two groups."""
    with taught(tmp_path / "w") as world:
        world.observe(blobs([0, 3, 4], 15, seed=1)[0])
        world.groups()
        yield world
