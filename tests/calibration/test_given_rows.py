"""Detectors with CV+ or with contamination take the same rows as others: far from zero, with names, as images."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from offmap import load
from offmap.density import ECODDetector, MahalanobisDetector, NearestNeighborDetector

DETECTORS = [ECODDetector, MahalanobisDetector, NearestNeighborDetector]
WAYS: list[dict[str, Any]] = [
    {"calibration": "cv"},
    {"contamination": 0.1, "calibration": 0.3},
    {"contamination": "auto", "calibration": 0.3},
    {"contamination": 0.1, "calibration": "cv"},
]


def drawn(seed: int, rows: int = 500) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, 3)) * [1, 10, 100]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("detector", DETECTORS)
def test_columns_far_from_zero_keep_the_rate(detector: Any, way: dict[str, Any]) -> None:
    shift = np.array([1.7e9, 0, 0])
    flagged = detector(**way, random_state=0).fit(drawn(0) + shift).assess(drawn(1) + shift).novel
    near_zero = detector(**way, random_state=0).fit(drawn(0)).assess(drawn(1)).novel
    assert np.mean(flagged != near_zero) < 0.02
    assert flagged.mean() < 0.2


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_columns_are_known_by_their_names(way: dict[str, Any]) -> None:
    frame = pd.DataFrame(drawn(0), columns=["a", "b", "c"])
    model = MahalanobisDetector(**way, random_state=0).fit(frame)
    assert model.predict(frame).mean() > 0.5
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["c", "b", "a"]])


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_images_are_scored_and_saved(way: dict[str, Any], dtype: Any, tmp_path: Any) -> None:
    scale = 255 if dtype == np.uint8 else 1
    images = (scale * np.random.default_rng(0).uniform(size=(300, 4, 4))).astype(dtype)
    model = NearestNeighborDetector(**way, random_state=0).fit(images[:200])
    novelty = model.novelty(images[200:])
    model.save(tmp_path / "model.safetensors")
    assert load(tmp_path / "model.safetensors").novelty(images[200:]).tobytes() == novelty.tobytes()


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_lists_of_rows_are_rows(way: dict[str, Any]) -> None:
    model = MahalanobisDetector(**way, random_state=0)
    expected = model.fit(drawn(0)).novelty(drawn(1))
    assert model.fit(drawn(0).tolist()).novelty(drawn(1).tolist()).tobytes() == expected.tobytes()
