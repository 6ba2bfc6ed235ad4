"""The promise, over every public estimator: fresh rows are flagged at the stated rate by the fitted threshold."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from offmap import arrays, base
from offmap.parameters import hints
from tests.estimators import CLASSES, ENTITY_DETECTORS, small

Array = NDArray[Any]
ALPHA, FITS = 0.1, 3
# Small networks that are trained for long: they know the rows they were fitted on by heart.
ENTITY_SETTINGS = {"epochs": 40, "hidden": (32,), "n_layers": 1, "embedding_size": 8, "lr": 0.02, "patience": None}


def overfitted(cls: Any, seed: int) -> tuple[Any, Array]:
    """A model of few noisy rows in many dimensions with labels that mean nothing, and fresh rows of the same source.

    Such a model knows its training rows by heart: they all look normal to it, and fresh rows do not.
    """
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(900, 30)), rng.integers(3, size=900)
    model = small(cls, alpha=ALPHA, calibration=199 / 300, random_state=seed)
    return model.fit(X[:300], y[:300]), X[300:]


@pytest.mark.parametrize("cls", CLASSES)
def test_fresh_rows_are_flagged_at_the_promised_rate(cls: Any) -> None:
    rates = []
    for seed in range(FITS):
        model, fresh = overfitted(cls, seed)
        assert len(model.calibration_novelty_) == 199
        rates.append(np.mean(model.novelty(fresh) > model.threshold_))
    # One rate is Beta(20, 180): its standard deviation is 0.021, that of the mean of three 0.012. Ties lower it.
    assert 0.05 < np.mean(rates) < 0.14, rates


@pytest.mark.parametrize("cls", CLASSES)
def test_no_row_both_trains_and_calibrates(cls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[Array] = []
    calibrated: list[Array] = []
    fit, in_chunks = cls._fit, arrays.in_chunks

    def spy_on_fit(self: Any, X: Any, *others: Any) -> None:
        trained.append(X.numpy().copy())
        fit(self, X, *others)

    def spy_on_scoring(function: Any, rows: Array, *others: Any) -> Any:
        calibrated.append(rows)
        return in_chunks(function, rows, *others)

    monkeypatch.setattr(cls, "_fit", spy_on_fit)
    monkeypatch.setattr(base, "in_chunks", spy_on_scoring)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 4)).astype(np.float32), rng.integers(3, size=200)
    small(cls, calibration=0.25).fit(X, y)
    seen = {row.tobytes() for row in np.concatenate(trained)}
    held_out = {row.tobytes() for row in np.concatenate(calibrated)}
    assert (len(seen), len(held_out)) == (150, 50)
    assert not seen & held_out


def overfitted_entities(cls: Any, seed: int) -> tuple[Any, Array, Array]:
    """The same for rows of entities that do not differ."""
    rng = np.random.default_rng(seed)
    X, entities = rng.normal(size=(900, 12)), np.arange(900) % 4
    known = {name: value for name, value in ENTITY_SETTINGS.items() if name in hints(cls)}
    model = small(cls, **known | {"alpha": ALPHA, "calibration": 199 / 300, "random_state": seed})
    return model.fit(X[:300], entities[:300]), X[300:], entities[300:]


@pytest.mark.parametrize("cls", ENTITY_DETECTORS)
def test_fresh_rows_of_entities_are_flagged_at_the_promised_rate(cls: Any) -> None:
    rates = []
    for seed in range(FITS):
        model, fresh, entities = overfitted_entities(cls, seed)
        assert len(model.calibration_novelty_) == 199
        rates.append(np.mean(model.novelty(fresh, entities) > model.threshold_))
    # One rate is Beta(20, 180): its standard deviation is 0.021, that of the mean of three 0.012.
    assert 0.06 < np.mean(rates) < 0.14, rates


@pytest.mark.parametrize("cls", ENTITY_DETECTORS)
def test_no_row_of_an_entity_both_trains_and_calibrates(cls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[Array] = []
    calibrated: list[Array] = []
    fit, novelty_of = cls._fit, cls._novelty_of

    def spy_on_fit(self: Any, observed: Any, given: Any) -> Any:
        trained.append(observed.X[observed.index].numpy().copy())
        return fit(self, observed, given)

    def spy_on_scoring(self: Any, X: Array, index: Array, places: Array) -> Any:
        calibrated.append(X[index])
        return novelty_of(self, X, index, places)

    monkeypatch.setattr(cls, "_fit", spy_on_fit)
    monkeypatch.setattr(cls, "_novelty_of", spy_on_scoring)
    X, entities = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32), np.arange(200) % 4
    small(cls, calibration=0.25, **({"epochs": 1} if "epochs" in hints(cls) else {})).fit(X, entities)
    seen = {row.tobytes() for row in np.concatenate(trained)}
    held_out = {row.tobytes() for row in np.concatenate(calibrated)}
    assert (len(seen), len(held_out)) == (150, 50)
    assert not seen & held_out
