"""What holds for every classifier that learns on after its fit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from offmap.openset import AnalyticClassifier, ANSClassifier
from offmap.openset.incremental import IncrementalClassifier

Array = NDArray[Any]

CENTRES = np.random.default_rng(9).normal(size=(6, 5)) * 4
ANS: dict[str, Any] = {"head_hidden": (8,), "steps": 20, "space": "raw", "closed_set_width": 40}
MAKERS: dict[str, Callable[..., IncrementalClassifier]] = {
    "analytic": lambda **given: AnalyticClassifier(width=60, random_state=0, **given),
    "ans, logistic": lambda **given: ANSClassifier(random_state=0, **ANS, **given),
    "ans, analytic": lambda **given: ANSClassifier(random_state=0, closed_set="analytic", **ANS, **given),
}
every_method = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def rows_of(*labels: int, rows: int = 40, seed: int = 0) -> tuple[Array, Array]:
    y = np.repeat(labels, rows)
    return CENTRES[y] + np.random.default_rng(seed).normal(size=(len(y), 5)), y


def answers(model: IncrementalClassifier, X: Array) -> tuple[bytes, bytes]:
    return model.novelty(X).tobytes(), model.predict_proba(X).tobytes()


@every_method
def test_a_copy_that_learns_leaves_the_model_as_it_was(make: Callable[..., IncrementalClassifier]) -> None:
    X, y = rows_of(0, 2)
    model = make(calibration=0.4, alpha=0.1).fit(X, y)
    before, history = answers(model, X), dict(model.history_)
    for copied in (model.at(alpha=0.2), model.at(alpha=0.2)):
        copied.partial_fit(*rows_of(1, 0))
        assert copied.classes_.tolist() == [0, 1, 2]
    assert answers(model, X) == before
    assert model.history_ == history


def test_a_copy_that_forgets_leaves_the_model_as_it_was() -> None:
    X, y = rows_of(0, 1, 2)
    model = AnalyticClassifier(width=60, calibration=0.4, alpha=0.1, random_state=0).fit(X, y)
    before = answers(model, X)
    model.at(alpha=0.2).remove_class(1)
    model.at(alpha=0.2).remove_rows(model.rows_[:3], model.row_labels_[:3])
    assert answers(model, X) == before
