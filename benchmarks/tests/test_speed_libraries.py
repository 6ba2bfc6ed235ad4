"""The libraries that are compared with do run, where they are installed."""

import pytest

from offmap_bench.tables.speed_libraries import COLUMNS, LIBRARIES, Workload, measure


@pytest.mark.parametrize("column", COLUMNS)
def test_every_library_has_its_turn(column: str) -> None:
    pytest.importorskip("pyod")
    pytest.importorskip("pythae")
    small = Workload(fitted=256, scored=32, width=12, hidden=8, latent_dim=2, epochs=1, turns=1)
    found = measure(small, column, seed=0)
    assert set(found) == set(LIBRARIES)
    assert min(found.values()) > 0
