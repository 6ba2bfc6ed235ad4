"""The promise, over every public estimator: fresh rows are flagged at the stated rate by the fitted threshold."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from offmap import arrays, base
from tests.estimators import CLASSES, small

Array = NDArray[Any]
ALPHA, FITS = 0.1, 10


def overfitted(cls: Any, seed: int) -> tuple[Any, Array]:
    """A model of few noisy rows in many dimensions with labels that mean nothing, and fresh rows of the same source.

    Such a model knows its training rows by heart: they all look normal to it, and fresh rows do not.
    """
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(540, 30)), rng.integers(3, size=540)
    model = small(cls, alpha=ALPHA, calibration=59 / 140, random_state=seed)
    return model.fit(X[:140], y[:140]), X[140:]


@pytest.mark.parametrize("cls", CLASSES)
def test_fresh_rows_are_flagged_at_the_promised_rate(cls: Any) -> None:
    rates = []
    for seed in range(FITS):
        model, fresh = overfitted(cls, seed)
        assert len(model.calibration_novelty_) == 59
        rates.append(np.mean(model.novelty(fresh) > model.threshold_))
    # One rate is Beta(6, 54): its standard deviation is 0.038, that of the mean of ten 0.012.
    assert 0.06 < np.mean(rates) < 0.14, rates


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
