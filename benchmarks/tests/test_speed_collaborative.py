"""The speed tables of detectors of many entities measure what they say, in a size for tests."""

import math

import numpy as np
import pytest

from offmap.collaborative import ClosedFormDetector
from offmap_bench.tables import speed_collaborative as speed


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "PAIRS", {"pairs": (40, 30)})
    monkeypatch.setattr(speed, "ENTITIES", {"entities": 1_200})
    monkeypatch.setattr(speed, "GROWTH", {"growth": 20})
    monkeypatch.setattr(speed, "ROWS", 400)
    monkeypatch.setattr(speed, "TURNS", 3)


def method() -> ClosedFormDetector:
    return ClosedFormDetector(features="pca", embedding_size=8, calibration=0.0)


def test_every_table_finds_its_metrics() -> None:
    for table in speed.TABLES:
        column = {"measure_scoring": "pairs", "measure_adding": "entities"}.get(table.measure.__name__, "growth")
        found = table.measure(method(), column, 0)
        assert set(table.metrics) <= set(found)
        assert all(math.isfinite(value) and value > 0 for value in found.values())


def test_entities_are_added_until_there_are_so_many() -> None:
    X, ids = speed.rows_of_entities(10, 200, 0)
    detector = method().fit(X, ids)
    speed.fill(detector, 57, 0)
    assert detector.entity_ids_.tolist() == list(range(57))
    assert (detector.entity_counts_[10:] == 20).all()


def test_a_forest_weighs_more_than_an_embedding() -> None:
    rows = speed.MEMORY.rows
    forest = speed.measure_memory(rows["an isolation forest each"], "1,000 entities", 0)["bytes per entity"]
    ours = speed.measure_memory(method(), "1,000 entities", 0)["bytes per entity"]
    assert ours < 200
    assert forest > 100 * ours


def test_entities_differ_in_their_rows() -> None:
    X, ids = speed.rows_of_entities(5, 5_000, 0)
    means = np.stack([X[ids == entity, :10].mean(axis=0) for entity in range(5)])
    assert means.std(axis=0).mean() > 0.5
