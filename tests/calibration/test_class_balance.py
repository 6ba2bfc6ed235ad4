"""Rates of the rows that are of each class."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from offmap import Guarded, load
from offmap.calibration import ClassPromise
from offmap.calibration.class_balance import class_offsets
from offmap.openset import MSPClassifier


def overlapping(rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two classes that overlap, one of them rare: probabilities, novelty, classes; rows in between look novel."""
    rare = rng.uniform(size=rows) < 0.25
    place = rng.normal(size=rows) + np.where(rare, 1.3, -1.3)
    likely = 1 / (1 + np.exp(-2 * 1.3 * place + np.log(3)))
    proba = np.column_stack([1 - likely, likely])
    return proba, 1 - proba.max(axis=1), rare.astype(int)


def rates_of_classes(by: Any) -> np.ndarray:
    """Rates of fresh rows of both classes, the mean of 60 promises."""
    rng, rates = np.random.default_rng(0), []
    for _ in range(60):
        promise, (proba, novelty, codes) = ClassPromise(by=by).fit(*overlapping(600, rng)), overlapping(3000, rng)
        novel = promise.p_value([(proba, novelty)]) <= 0.05
        rates.append([novel[codes == code].mean() for code in range(2)])
    return np.asarray(np.mean(rates, axis=0))


def test_a_rare_class_that_is_often_mistaken_keeps_its_rate() -> None:
    # The noise of the means is 0.0012 and 0.0026.
    assert (np.abs(rates_of_classes("actual") - 0.048) < 0.008).all()
    # By the predicted class, its rows that are mistaken for the other one are flagged on top.
    assert rates_of_classes("predicted")[1] > 0.07


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 99), folds=st.integers(1, 3))
def test_the_p_value_is_the_weighted_mean_of_those_of_the_classes(seed: int, folds: int) -> None:
    rng = np.random.default_rng(seed)
    parts, rows = [], []
    for _ in range(folds):
        drawn = rng.dirichlet(np.ones(3), size=60), rng.normal(size=60).round(1), rng.integers(3, size=60)
        parts.append((drawn, ClassPromise(by="actual").fit(*drawn)))
        rows.append((rng.dirichlet(np.ones(3), size=5), rng.normal(size=5).round(1)))
    joined = ClassPromise.joined([part for _, part in parts], alpha=0.1)
    theta, beta = joined.offsets_, joined.sharpness_

    def moved(proba: np.ndarray, novelty: float) -> float:
        powers = powered(proba)
        return float(novelty - sum(power / sum(powers) * theta[c] for c, power in enumerate(powers)))

    def powered(proba: np.ndarray) -> list[float]:
        return [max(p, 0.01 / 3) ** beta for p in proba]

    for i, found in enumerate(joined.p_value(rows)):
        expected = 0.0
        for c in range(3):
            at_least = [
                moved(proba[j], novelty[j]) >= moved(row_proba[i], row_novelty[i]) - 1e-12
                for ((proba, novelty, codes), _), (row_proba, row_novelty) in zip(parts, rows, strict=True)
                for j in range(60)
                if codes[j] == c
            ]
            weight = float(np.mean([powered(row_proba[i])[c] / sum(powered(row_proba[i])) for row_proba, _ in rows]))
            expected += weight * (1 + sum(at_least)) / (1 + len(at_least))
        assert found == pytest.approx(expected)


def test_offsets_give_the_held_out_rows_of_each_class_the_same_rate() -> None:
    """Each class has a spread of its own, and a tenth of the rows is mistaken for another class."""
    rng = np.random.default_rng(1)
    codes = rng.integers(3, size=3000)
    predicted = np.where(rng.uniform(size=3000) < 0.1, (codes + 1) % 3, codes)
    weights = 0.1 + 0.7 * np.eye(3)[predicted]
    novelty = (1 + codes) * rng.normal(size=3000)
    of_class = codes == np.arange(3)[:, None]
    theta = class_offsets(novelty, weights, of_class, 0.05)
    above = novelty > weights @ theta
    assert [above[rows].mean() for rows in of_class] == pytest.approx([0.05] * 3, abs=0.003)
    one_threshold = novelty > np.quantile(novelty, 0.95)
    assert one_threshold[of_class[2]].mean() > 0.1


def test_infinite_novelty_has_finite_offsets() -> None:
    proba, novelty, codes = overlapping(300, np.random.default_rng(2))
    novelty[:40] = np.inf
    promise = ClassPromise(by="actual").fit(proba, novelty, codes)
    assert np.isfinite(promise.offsets_).all()
    assert promise.p_value([(proba[:1], np.array([np.inf]))])[0] > 0.05
    # A network may answer NaN; such a row is as novel as can be, and all classes count alike.
    assert promise.p_value([(np.full((1, 2), np.nan), np.array([np.inf]))])[0] < 0.2
    nothing = ClassPromise(by="actual").fit(proba, np.full(300, -np.inf), codes)
    assert not nothing.offsets_.any()


def test_a_classifier_that_knows_nothing_has_one_threshold() -> None:
    """Without any probabilities to tell classes apart, no offsets can help, and the rate holds over all rows."""
    rng = np.random.default_rng(0)
    proba, flagged = np.full((400, 2), 0.5), []
    for _ in range(40):
        promise = ClassPromise(by="actual").fit(proba, rng.normal(size=400), np.arange(400) % 2)
        flagged.append((promise.p_value([(proba, rng.normal(size=400))]) <= 0.05).mean())
    assert 0.035 < np.mean(flagged) < 0.06


def test_digits_are_flagged_alike() -> None:
    """A tenth of the eights is mistaken for other digits by a classifier that is unsure of all of its answers."""
    X, y = load_digits(return_X_y=True)
    flagged: dict[Any, list[list[float]]] = {"actual": [], "predicted": []}
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(X))
        train, held_out, fresh = np.split(order, [600, 1200])
        classifier = LogisticRegression(max_iter=100, C=0.01).fit(X[train] / 16, y[train])
        for by, rates in flagged.items():
            model = Guarded(classifier, by_class=by).calibrate(X[held_out] / 16, y[held_out])
            novel = model.assess(X[fresh] / 16).novel
            rates.append([novel[y[fresh] == digit].mean() for digit in range(10)])
    actual, predicted = (np.mean(flagged[by], axis=0) for by in ("actual", "predicted"))
    # The noise of a mean is 0.008.
    assert 0.02 < actual.min() < actual.max() < 0.07
    assert predicted.max() > 0.15


@pytest.mark.parametrize("calibration", [0.4, "cv"])
def test_it_is_saved_and_stated(calibration: Any, tmp_path: Any) -> None:
    X, y = load_digits(return_X_y=True)
    model = MSPClassifier(by_class="actual", calibration=calibration, epochs=2, random_state=0).fit(
        X[:600] / 16, y[:600]
    )
    verdict = model.assess(X[600:] / 16)
    assert verdict.p_value is not None
    assert (verdict.novel == (verdict.p_value <= 0.05)).all()
    assert "closely, not exactly, for the rows that are of each class" in model.promise_in_words
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.p_value(X[600:] / 16).tobytes() == verdict.p_value.tobytes()
    other = again.at(alpha=0.2)
    assert (other.class_promise_.offsets_ != model.class_promise_.offsets_).any()
    assert other.assess(X[600:] / 16).novel.sum() > verdict.novel.sum()


def test_a_row_gets_the_same_bytes_in_any_batch() -> None:
    """A forest votes in steps, so many rows tie with held-out ones, and the last bit of a sum decides."""
    rng = np.random.default_rng(0)
    proba = rng.multinomial(20, np.full(12, 1 / 12), 400) / 20
    codes = proba.argmax(axis=1)
    promise = ClassPromise(alpha=0.1, by="actual").fit(proba[:300], 1 - proba[:300].max(axis=1), codes[:300])
    novelty = 1 - proba.max(axis=1)
    whole = promise.p_value([(proba, novelty)])
    for size in (1, 3, 7):
        parts = np.split(np.arange(400), range(size, 400, size))
        found = [promise.p_value([(proba[rows], novelty[rows])]) for rows in parts]
        np.testing.assert_array_equal(np.concatenate(found), whole)
