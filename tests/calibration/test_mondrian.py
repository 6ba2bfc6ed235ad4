"""P-values by class and prediction sets."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from offmap import Guarded, load
from offmap.calibration import ClassPromise
from offmap.openset import LOFClassifier, MSPClassifier
from offmap.scores import Outputs
from tests.estimators import small

CENTRES, SPREADS = np.array([[0.0, 0.0], [7.0, 0.0], [0.0, 7.0]]), np.array([0.4, 1.0, 2.0])


def drawn(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three classes, of which the last is spread most: over all classes, its rows are most of the false alarms."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=rows)
    return CENTRES[y] + SPREADS[y, None] * rng.normal(size=(rows, 2)), y


def distance(classifier: Any, X: np.ndarray) -> np.ndarray:
    return np.min([np.linalg.norm(X - centre, axis=1) for centre in CENTRES], axis=0)


def guarded(**parameters: Any) -> Any:
    return Guarded(LogisticRegression(), novelty_score=distance, random_state=0, **parameters)


def test_p_values_count_as_the_formula_does() -> None:
    rng = np.random.default_rng(0)
    proba, novelty = rng.dirichlet(np.ones(3), size=150), rng.normal(size=150).round(1)
    codes = rng.integers(3, size=150)
    promise = ClassPromise(alpha=0.1).fit(proba, novelty, codes)
    gaps = np.log(proba.max(axis=1))[:, None] - np.log(proba)
    limit = np.sort(gaps[np.arange(150), codes])[int(np.ceil(0.99 * 149))]

    def score(novelty: float, gap: float) -> tuple[int, float]:
        return (0, novelty) if gap <= limit else (1, gap)

    held_out = [score(novelty[i], gaps[i, codes[i]]) for i in range(150)]
    naive = [
        [
            (1 + sum(held_out[j] >= score(novelty[i], gaps[i, c]) for j in np.flatnonzero(codes == c)))
            / (1 + sum(codes == c))
            for c in range(3)
        ]
        for i in range(30)
    ]
    np.testing.assert_allclose(promise.p_values([(proba[:30], novelty[:30])]), naive)


def test_the_p_value_counts_rows_that_their_model_names_alike() -> None:
    rng = np.random.default_rng(0)
    parts, rows = [], []
    for _ in range(2):
        proba, novelty = rng.dirichlet(np.ones(3), size=120), rng.normal(size=120).round(1)
        parts.append(ClassPromise().fit(proba, novelty, rng.integers(3, size=120)))
        rows.append((rng.dirichlet(np.ones(3), size=40), rng.normal(size=40).round(1)))
    joined = ClassPromise.joined(parts, alpha=0.05)
    for i, found in enumerate(joined.p_value(rows)):
        alike = [
            part.novelty_[j] >= novelty[i]
            for part, (proba, novelty) in zip(parts, rows, strict=True)
            for j in range(120)
            if part.named_[j] == proba[i].argmax()
        ]
        assert found == (1 + sum(alike)) / (1 + len(alike))


def test_the_rate_of_each_named_class_is_attained_whatever_the_classifier() -> None:
    """The named class says nothing of the true one here, and each has a novelty of its own scale."""
    rng = np.random.default_rng(0)

    def seen(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        named = rng.choice(3, size=rows, p=[0.6, 0.3, 0.1])
        return np.eye(3)[named] * 0.7 + 0.1, (1 + 3 * named) * rng.normal(size=rows), rng.integers(3, size=rows)

    rates = []
    for _ in range(60):
        promise, (proba, novelty, _) = ClassPromise(alpha=0.05).fit(*seen(1000)), seen(2000)
        novel = promise.p_value([(proba, novelty)]) <= 0.05
        rates.append([novel[proba.argmax(axis=1) == code].mean() for code in range(3)])
    # About 600, 300 and 100 rows attain 0.0499, 0.0498 and 0.0495 or a step less; the noise is below 0.004.
    assert (np.abs(np.mean(rates, axis=0) - 0.047) < 0.008).all()


def test_classes_that_are_told_apart_badly_are_not_spared() -> None:
    """A row between two digits is novel to both; the class that rejects it last must not decide alone."""
    X, y = load_digits(return_X_y=True)
    flagged = []
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(X))
        fit, fresh = order[:900], order[900:]
        model = Guarded(LogisticRegression(max_iter=200), calibration=0.5, by_class="predicted", random_state=seed)
        flagged.append(model.fit(X[fit] / 16, y[fit]).assess(X[fresh] / 16).novel.mean())
    assert 0.035 < np.mean(flagged) < 0.06


def test_the_rate_holds_for_each_class_where_one_threshold_fails() -> None:
    X, y = drawn(3000, 0)
    fresh, true = drawn(6000, 1)
    for by_class, low, high in (("predicted", 0.03, 0.07), ("actual", 0.03, 0.07), (None, 0.0, 0.2)):
        novel = guarded(by_class=by_class).fit(X, y).assess(fresh).novel
        rates = np.array([novel[true == c].mean() for c in range(3)])
        assert (rates > low).all() == (by_class is not None)
        assert (rates < high).all()


def test_sets_hold_the_true_class_of_each_class() -> None:
    X, y = drawn(3000, 0)
    fresh, true = drawn(4000, 1)
    model = guarded(by_class="predicted").fit(X, y)
    sets, verdict = model.predict_set(fresh), model.assess(fresh)
    covered = np.array([label in kept for label, kept in zip(true, sets, strict=True)])
    for c in range(3):
        assert 0.93 < covered[true == c].mean() < 0.985
    rejected = np.array([len(kept) == 0 for kept in sets])
    # The classes lie apart, so that the named class and the only plausible one are nearly always the same.
    assert (rejected == verdict.novel).mean() > 0.99
    assert (verdict.novel == (verdict.p_value <= 0.05)).all()
    assert model.predict_set([[50.0, 50.0]])[0].size == 0


def test_small_classes_share_one_promise() -> None:
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], [100, 12, 10])
    novelty = rng.uniform(size=122) + codes
    proba = np.full((122, 3), 1 / 3)
    promise = ClassPromise(alpha=0.05).fit(proba, novelty, codes)
    found = promise.p_values([(proba[:1], np.array([1.5]))])[0]
    pool = novelty[codes > 0]
    assert found[0] == 1 / 101
    assert found[1] == found[2] == (1 + (pool >= 1.5).sum()) / 23
    # Together they are too few for this rate: all rows stand for them.
    assert promise.at(0.02).p_values([(proba[:1], np.array([1.5]))])[0][1] == (1 + (novelty >= 1.5).sum()) / 123


def test_classes_that_are_seldom_named_share_one_promise() -> None:
    rng = np.random.default_rng(0)
    named = np.repeat([0, 1, 2], [100, 12, 10])
    novelty = rng.uniform(size=122) + named
    promise = ClassPromise(alpha=0.05).fit(np.eye(3)[named], novelty, rng.integers(3, size=122))
    rows = (np.eye(3), np.full(3, 1.5))
    pool = novelty[named > 0]
    shared = (1 + (pool >= 1.5).sum()) / 23
    assert promise.p_value([rows]).tolist() == [1 / 101, shared, shared]
    assert promise.at(0.02).p_value([rows])[1] == (1 + (novelty >= 1.5).sum()) / 123


@pytest.mark.parametrize("calibration", [0.4, "cv"])
def test_offmaps_own_classifiers_have_them_and_save_them(calibration: Any, tmp_path: Any) -> None:
    X, y = drawn(400, 0)
    names = np.array(["ant", "bee", "cat"])[y]
    model = LOFClassifier(by_class="predicted", calibration=calibration, random_state=0).fit(X, names)
    fresh, true = drawn(500, 1)
    sets = model.predict_set(fresh)
    covered = [label in kept for label, kept in zip(np.array(["ant", "bee", "cat"])[true], sets, strict=True)]
    assert np.mean(covered) > 0.9
    p_value = model.p_value(fresh)
    assert (model.assess(fresh).novel == (p_value <= 0.05)).all()
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert all((one == two).all() for one, two in zip(sets, again.predict_set(fresh), strict=True))
    assert again.p_value(fresh).tobytes() == p_value.tobytes()
    moved = model.recalibrate(fresh, np.array(["ant", "bee", "cat"])[true])
    assert len(moved.class_promise_.code_) == 500
    assert len(moved.predict_set(X)) == 400
    # Sets of a larger rate are smaller.
    assert all(
        set(kept) <= set(more)
        for kept, more in zip(model.at(alpha=0.3).predict_set(X), model.predict_set(X), strict=True)
    )


def test_a_fitted_classifier_needs_the_classes_of_the_rows() -> None:
    X, y = drawn(600, 0)
    classifier = LogisticRegression().fit(X[:300], y[:300])
    model = Guarded(classifier, novelty_score=distance, by_class="predicted")
    assert len(model.calibrate(X[300:], y[300:]).predict_set(X[:5])) == 5
    with pytest.raises(ValueError, match="the known class of each of the 300 rows; got None, and by_class needs them"):
        model.calibrate(X[300:])
    with pytest.raises(ValueError, match=r"got an array of shape \(10,\)"):
        model.calibrate(X[300:], y[:10])
    with pytest.raises(ValueError, match=r"y holds the label \d+, which is no known class"):
        model.calibrate(X[300:], y[300:] + 7)


@pytest.mark.parametrize("by_class", ["predicted", "actual"])
def test_classes_may_be_in_any_order(by_class: Any) -> None:
    rng, order = np.random.default_rng(0), np.array(["cat", "ant", "bee"])
    codes = rng.integers(3, size=600)
    outputs = Outputs(logits=5 * np.eye(3)[codes] + rng.normal(size=(600, 3)))
    model = Guarded(classes=order, by_class=by_class).calibrate(outputs, order[codes])
    assert (model.class_promise_.code_ == codes).all()
    again = model.recalibrate(outputs, order[codes])
    assert (again.class_promise_.code_ == codes).all()
    assert again.p_value(outputs).tobytes() == model.p_value(outputs).tobytes()
    assert np.mean([label in kept for label, kept in zip(order[codes], model.predict_set(outputs), strict=True)]) > 0.9


def test_what_cannot_be_combined_is_named() -> None:
    X, y = drawn(300, 0)
    with pytest.raises(ValueError, match='fit with by_class="predicted"'):
        guarded().fit(X, y).predict_set(X)
    with pytest.raises(ValueError, match="cannot be combined with by_class"):
        small(MSPClassifier, by_class="predicted", confidence=0.9).fit(X, y)
    with pytest.raises(ValueError, match='need rule="calibrated"'):
        small(MSPClassifier, by_class="predicted", rule="own").fit(X, y)


@pytest.mark.parametrize("by", ["predicted", "actual"])
def test_a_guarded_classifier_of_folds_decides_by_class(by: Any) -> None:
    X, y = drawn(300, 0)
    fresh, truth = drawn(600, 1)
    model = guarded(calibration="cv", by_class=by).fit(X, y)
    plain = guarded(calibration="cv").fit(X, y)
    assert (model.p_value(fresh) != plain.p_value(fresh)).any()
    # One threshold for all flags rows of the class that is spread most only.
    assert plain.assess(fresh).novel[truth < 2].sum() < model.assess(fresh).novel[truth < 2].sum()
    assert np.mean([c in kept for c, kept in zip(truth, model.predict_set(fresh), strict=True)]) > 0.9


@pytest.mark.parametrize("by_class", ["predicted", "actual"])
def test_classes_with_too_few_held_out_rows_are_named(by_class: Any) -> None:
    X, y = drawn(600, 0)
    few = (y != 1) | (np.arange(600) < 60)
    X, y = X[few], np.array(["ant", "bee", "cat"])[y[few]]
    model = guarded(by_class=by_class).fit(X, y)
    assert model.promise_in_words.endswith("These classes have too few held-out rows for a rate of their own: bee.")
    # A larger rate needs fewer rows.
    assert "too few" not in model.at(alpha=0.3).promise_in_words


def test_rows_that_recalibrate_are_of_known_classes() -> None:
    X, y = drawn(600, 0)
    model = guarded().fit(X, y)
    assert model.recalibrate(X, y).threshold_ == model.recalibrate(X).threshold_
    with pytest.raises(ValueError, match=r"y holds the label \d+, which is no known class: 0, 1, 2; .* leave them out"):
        model.recalibrate(X, y + 1)
    with pytest.raises(ValueError, match=r"y must hold the known class of each of the 600 rows; got an array of .*10"):
        model.recalibrate(X, y[:10])
    # NumPy takes "1" for 1.
    with pytest.raises(ValueError, match="y must hold integers"):
        model.recalibrate(X, y.astype(str))
