"""The pictures of collaborative anomaly detection are drawn from what was found."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from offmap_bench.image_tasks import Images, active_classes
from offmap_bench.run import Run, empty_cells
from offmap_bench.tables import collaborative_figures
from offmap_bench.tables.collaborative_figures import COLD, TABLES, cosines

SIMILARITY, COLD_START = TABLES


def test_cosines_are_seen_from_the_mean() -> None:
    found = cosines(np.array([[9.0, 5.0], [11.0, 5.0], [10.0, 4.0], [10.0, 6.0]]))
    np.testing.assert_allclose(found[0], [1, -1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(np.diag(found), 1)


def test_unseen_tasks_get_embeddings_of_the_trained_model(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(1500) % 10
    X = (25 * y[:, None, None] + rng.integers(20, size=(1500, 32, 32))).astype(np.uint8)
    monkeypatch.setattr(collaborative_figures, "images", lambda name: Images(X, y, X[:0], y[:0]))
    monkeypatch.setattr(collaborative_figures, "CPU", {"conv_channels": 2, "epochs": 1, "patience": None})
    monkeypatch.setattr(collaborative_figures, "SEED_TASKS", (8,))
    found = collaborative_figures.unseen_embeddings("cpu")
    assert found.shape == (120, 8)
    assert np.isfinite(found).all()


def test_the_similarity_of_tasks_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = active_classes(3) @ np.random.default_rng(0).normal(size=(10, 252))
    monkeypatch.setattr(collaborative_figures, "unseen_embeddings", lambda profile: mixed)
    picture = imread(SIMILARITY.save("cpu", tmp_path))
    assert picture.std() > 0.1


def test_the_cold_start_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(table: Any, profile: str) -> Any:
        one = Run(0, dict.fromkeys(COLD.metrics, 0.9), 1.0)
        return [replace(cell, runs=(one,)) for cell in empty_cells(table, profile)]

    monkeypatch.setattr(collaborative_figures, "run", measured)
    assert imread(COLD_START.save("cpu", tmp_path)).std() > 0.05
