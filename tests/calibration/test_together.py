"""Rows judged together with known rows that the model has not seen."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from offmap import Calibrated, Guarded
from offmap.calibration import assess_together, pooled_novelty
from offmap.collaborative import EntityGaussianDetector
from offmap.data import hold_out_classes, load
from offmap.density import MahalanobisDetector
from offmap.metrics import auroc
from offmap.openset import LOFClassifier, MSPClassifier

# The score sees the first feature, in which the new class overlaps with the known rows; in the second it lies apart.
NEW_CLASS = np.array([1.5, 5.0, 0.0])


def first(rows: Any) -> np.ndarray:
    return np.asarray(rows)[:, 0]


def batch(seed: int, known: int = 300, novel: int = 150, normal: int = 300) -> tuple[np.ndarray, ...]:
    """Known rows to compare with, rows to judge, and which of these are of the new class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(normal + novel, 3))
    X[normal:] += NEW_CLASS
    return rng.normal(size=(known, 3)), X, np.arange(len(X)) >= normal


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 999), n=st.integers(2, 30), neighbors=st.integers(1, 12))
def test_pooled_novelty_is_half_the_own_rank_and_half_that_of_neighbours(seed: int, n: int, neighbors: int) -> None:
    rng = np.random.default_rng(seed)
    novelty, features = rng.normal(size=n), rng.normal(size=(n, 2)) * [1.0, 100.0]
    scaled = features / features.std(axis=0)
    ranks = [sum(other <= own for other in novelty) / n for own in novelty]
    for place, found in enumerate(pooled_novelty(novelty, features, neighbors)):
        others = sorted(set(range(n)) - {place}, key=lambda other: float(((scaled[other] - scaled[place]) ** 2).sum()))
        near = [ranks[other] for other in others[:neighbors]]
        assert found == pytest.approx(ranks[place] / 2 + sum(near) / len(near) / 2)


def test_a_feature_that_never_changes_is_no_obstacle() -> None:
    found = pooled_novelty(np.arange(4.0), np.array([[1.0, 0], [1, 1], [1, 8], [1, 9]]), 1)
    np.testing.assert_allclose(found, [0.375, 0.375, 0.875, 0.875])


@pytest.mark.parametrize("alpha", [0.05, 0.2])
@pytest.mark.parametrize("novel", [0, 600])
def test_the_rate_of_false_alarms_is_kept_whatever_the_share_of_novel_rows(alpha: float, novel: int) -> None:
    rates = []
    for seed in range(40):
        known, X, is_new = batch(seed, novel=novel)
        model = Calibrated(first, alpha=alpha).calibrate(known)
        rates.append(assess_together(model, X, known).novel[~is_new].mean())
    assert np.mean(rates) == pytest.approx(alpha, abs=0.2 * alpha)


def test_a_group_of_novel_rows_is_found_where_its_rows_one_by_one_are_not() -> None:
    known, X, is_new = batch(0)
    model = Calibrated(first, alpha=0.1).calibrate(known)
    alone, together = model.assess(X), assess_together(model, X, known, features=lambda rows: rows[:, 1:])
    assert auroc(together.novelty[~is_new], together.novelty[is_new]) > 0.05 + auroc(
        alone.novelty[~is_new], alone.novelty[is_new]
    )
    assert together.novel[is_new].mean() > 0.3 + alone.novel[is_new].mean()


def test_an_isolated_outlier_looks_less_novel_among_known_rows() -> None:
    known, X, _ = batch(0, novel=0)
    X[0] = 4.0
    model = Calibrated(first).calibrate(known)
    assert assess_together(model, X, known).p_value[0] > model.assess(X).p_value[0]  # type: ignore[index]


def test_a_new_digit_is_found_more_often() -> None:
    digits = load("digits")
    assert digits.y is not None
    gains = []
    for seed in range(3):
        split = hold_out_classes(digits.X, digits.y, known=range(7), test_size=0.4, seed=seed)
        X, y, known = split.X_train[200:], split.y_train[200:], split.X_train[:200]
        model = MSPClassifier(random_state=seed).fit(X, y).recalibrate(known)
        alone, together = model.assess(split.X_test), assess_together(model, split.X_test, known)
        gains.append(together.novel[split.unknown].mean() - alone.novel[split.unknown].mean())
        assert together.label is not None
        assert together.closest is not None
        assert (together.label == np.where(together.novel, -1, together.closest)).all()
    assert np.mean(gains) > 0.1


def test_the_rate_may_be_stated_or_left_to_the_rows() -> None:
    known, X, is_new = batch(0)
    model = Calibrated(first, alpha=0.05).calibrate(known)
    stated, auto = assess_together(model, X, known, alpha=0.2), assess_together(model, X, known, alpha="auto")
    p_value = np.asarray(stated.p_value)
    assert (stated.novel == (p_value <= 0.2)).all()
    assert (auto.novel == is_new).mean() > (assess_together(model, X, known).novel == is_new).mean()


def test_without_novel_rows_the_rate_of_the_model_stays() -> None:
    known, _, _ = batch(3, novel=0)
    model = Calibrated(first, alpha=0.05).calibrate(known)
    assert assess_together(model, known, known, alpha="auto").novel.mean() < 0.1


def _frame(rows: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list("abc")).assign(kind=np.where(rows[:, 0] > 0, "x", "y"))


def _classes(rows: np.ndarray) -> np.ndarray:
    return (rows[:, 1] > 0).astype(int)


MODELS: dict[str, Callable[[np.ndarray], tuple[Any, Callable[[np.ndarray], Any]]]] = {
    "table": lambda X: (MahalanobisDetector(random_state=0).fit(_frame(X)), _frame),
    "encoder": lambda X: (MahalanobisDetector(encoder=StandardScaler(), random_state=0).fit(X), np.asarray),
    "folds": lambda X: (MahalanobisDetector(calibration="cv", random_state=0).fit(_frame(X)), _frame),
    "classifier": lambda X: (LOFClassifier(epochs=2, random_state=0).fit(X, _classes(X)), np.asarray),
    "guarded": lambda X: (Guarded(LogisticRegression(), novelty_score="mahalanobis").fit(X, _classes(X)), np.asarray),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_can_be_asked(name: str) -> None:
    known, X, is_new = batch(1)
    model, rows = MODELS[name](np.random.default_rng(7).normal(size=(400, 3)))
    found = assess_together(model, rows(X), rows(known))
    assert len(found) == len(X)
    assert found.novel[is_new].mean() > 0.3
    assert found.novel[~is_new].mean() < 0.12


def test_neighbours_may_be_found_by_other_features() -> None:
    known, X, is_new = batch(2)
    model = Calibrated(first, alpha=0.1).calibrate(known)
    apart = assess_together(model, X, known, features=lambda rows: rows[:, [1]])
    useless = assess_together(model, X, known, features=lambda rows: rows[:, [2]])
    assert apart.novel[is_new].mean() > 0.3 + useless.novel[is_new].mean()


MODEL = Calibrated(first).calibrate(batch(0)[0])
WRONG = {
    "known has 0 samples": {"known": np.empty((0, 3))},
    "known must be rows of numbers; encode texts first": {"features": lambda rows: [["text"]] * len(rows)},
    "known holds NaN or infinity in row 0": {"features": lambda rows: rows * np.nan},
    "features must return one row of numbers per row; got 299 for 300 rows of known": {
        "features": lambda rows: rows[:-1]
    },
    "neighbors": {"neighbors": 0},
    "alpha": {"alpha": 1.5},
    "put the LogisticRegression into Calibrated or Guarded": {"model": LogisticRegression()},
    "model has confidence, which judging rows together does not keep; fit it without": {
        "model": Calibrated(first, confidence=0.9).calibrate(batch(0)[0])
    },
    "a model of entities": {
        "model": EntityGaussianDetector(random_state=0).fit(batch(0)[0], np.arange(300) % 3),
    },
}


@pytest.mark.parametrize("message", WRONG)
def test_bad_input_gets_one_clear_message(message: str) -> None:
    known, X, _ = batch(0)
    arguments: dict[str, Any] = {"model": MODEL, "X": X, "known": known} | WRONG[message]  # type: ignore[operator]
    with pytest.raises(ValueError, match=message):
        assess_together(arguments.pop("model"), **arguments)
