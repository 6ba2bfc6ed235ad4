"""Columns far from zero keep their digits, and ordinary columns keep their bytes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import offmap
from offmap.collaborative import EntityForestDetector
from offmap.density import NearestNeighborDetector, TextureDetector, VAEDetector
from offmap.metrics import auroc
from offmap.openset import MSPClassifier
from offmap.precision import Shift

RNG = np.random.default_rng(0)
NORMAL, FRESH = RNG.normal(size=(400, 2)), RNG.normal(size=(150, 2))
NOVEL = FRESH + np.array([8.0, 0.0])
AT = [(1e12, 1e3), (1.7e9, 10.0), (-1e15, 1e4), (1e200, 1e199), (0.0, 1e-200)]


def found(detector: Any, at: float, spread: float) -> float:
    far = [np.column_stack([at + spread * rows[:, 0], rows[:, 1]]) for rows in (NORMAL, FRESH, NOVEL)]
    entities = [np.arange(len(rows)) % 4 for rows in far]
    if isinstance(detector, EntityForestDetector):
        model = detector.fit(far[0], entities[0])
        scores = [model.novelty(rows, ids) for rows, ids in zip(far[1:], entities[1:], strict=True)]
    else:
        model = detector.fit(far[0])
        scores = [model.novelty(rows) for rows in far[1:]]
    return auroc(*scores)


@pytest.mark.parametrize(("at", "spread"), AT)
@pytest.mark.parametrize(
    "detector",
    [
        NearestNeighborDetector(random_state=0),
        TextureDetector(random_state=0),
        VAEDetector(epochs=20, random_state=0),
        EntityForestDetector(random_state=0, n_estimators=50),
    ],
    ids=lambda detector: type(detector).__name__,
)
def test_anomalies_are_found_wherever_a_column_lies(detector: Any, at: float, spread: float) -> None:
    # The forest of an entity with few rows is less sure than the others, at any place.
    near = found(clone(detector), at=0.0, spread=1.0)
    assert found(detector, at, spread) > near - 0.01 > 0.9


def test_a_classifier_tells_classes_apart_by_unix_times() -> None:
    y = np.arange(400) % 2
    X = np.column_stack([1.7e9 + 10 * (NORMAL[:, 0] + 8 * y), NORMAL[:, 1]])
    model = MSPClassifier(epochs=20, random_state=0).fit(X, y)
    assert (model.predict_closed(X) == y).mean() > 0.98


@given(st.integers(0, 50), st.floats(-100, 100), st.floats(0.5, 50))
def test_columns_that_single_precision_holds_are_left_alone(seed: int, mean: float, spread: float) -> None:
    assert Shift.fit(np.random.default_rng(seed).normal(mean, spread, size=(50, 3))) is None


@given(st.floats(1e8, 1e14), st.floats(1, 100))
def test_a_shifted_column_has_all_its_digits(mean: float, spread: float) -> None:
    column = mean + spread * NORMAL[:, :1]
    shift = Shift.fit(column)
    if shift is None:
        assert 2.0**-24 * mean <= 2.0**-10 * column.std() * 1.01
        return
    np.testing.assert_allclose(shift.apply(column) * shift.scale + shift.shift, column, rtol=1e-15)
    assert abs(shift.apply(column)).max() < 1e3 * spread


def test_the_shift_is_saved_and_forgotten_by_the_next_fit(tmp_path: Any) -> None:
    far = NORMAL + 1e12
    model = NearestNeighborDetector(random_state=0).fit(far)
    model.save(tmp_path / "model")
    assert offmap.load(tmp_path / "model").novelty(far).tobytes() == model.novelty(far).tobytes()
    fresh = NearestNeighborDetector(random_state=0).fit(NORMAL)
    assert model.fit(NORMAL).novelty(NORMAL).tobytes() == fresh.novelty(NORMAL).tobytes()
    assert not hasattr(model, "column_shift_")


@pytest.mark.parametrize(
    "X",
    [
        np.arange(6).reshape(3, 2).astype("datetime64[s]"),
        np.full((3, 2), "NaT", dtype="datetime64[ns]"),
        np.arange(6).reshape(3, 2).astype("timedelta64[s]"),
    ],
)
def test_dates_are_refused(X: Any) -> None:
    with pytest.raises(ValueError, match="X holds dates or durations; give numbers"):
        NearestNeighborDetector().fit(X)
    with pytest.raises(ValueError, match="X holds dates or durations; give numbers"):
        NearestNeighborDetector().fit(NORMAL).novelty(X)
