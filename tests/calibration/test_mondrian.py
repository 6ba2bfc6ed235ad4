"""P-values by class and prediction sets."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from offmap import Guarded, load
from offmap.calibration import ClassPromise
from offmap.openset import LOFClassifier, MSPClassifier
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


def test_the_rate_holds_for_each_class_where_one_threshold_fails() -> None:
    X, y = drawn(3000, 0)
    fresh, true = drawn(6000, 1)
    for by_class, low, high in ((True, 0.03, 0.07), (False, 0.0, 0.2)):
        novel = guarded(by_class=by_class).fit(X, y).assess(fresh).novel
        rates = np.array([novel[true == c].mean() for c in range(3)])
        assert (rates > low).all() == by_class
        assert (rates < high).all()


def test_sets_hold_the_true_class_and_no_class_means_novel() -> None:
    X, y = drawn(3000, 0)
    fresh, true = drawn(4000, 1)
    model = guarded(by_class=True).fit(X, y)
    sets, verdict = model.predict_set(fresh), model.assess(fresh)
    covered = np.array([label in kept for label, kept in zip(true, sets, strict=True)])
    for c in range(3):
        assert 0.93 < covered[true == c].mean() < 0.985
    assert ([len(kept) == 0 for kept in sets] == verdict.novel).all()
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


@pytest.mark.parametrize("calibration", [0.4, "cv"])
def test_offmaps_own_classifiers_have_them_and_save_them(calibration: Any, tmp_path: Any) -> None:
    X, y = drawn(400, 0)
    names = np.array(["ant", "bee", "cat"])[y]
    model = LOFClassifier(by_class=True, calibration=calibration, random_state=0).fit(X, names)
    fresh, true = drawn(500, 1)
    sets = model.predict_set(fresh)
    covered = [label in kept for label, kept in zip(np.array(["ant", "bee", "cat"])[true], sets, strict=True)]
    assert np.mean(covered) > 0.9
    assert (model.assess(fresh).novel == [len(kept) == 0 for kept in sets]).all()
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors").predict_set(fresh)
    assert all((one == two).all() for one, two in zip(sets, again, strict=True))
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
    model = Guarded(classifier, novelty_score=distance, by_class=True)
    assert len(model.calibrate(X[300:], y[300:]).predict_set(X[:5])) == 5
    with pytest.raises(ValueError, match="y must hold the known class of each row"):
        model.calibrate(X[300:])
    with pytest.raises(ValueError, match="y must hold the known class of each row"):
        model.calibrate(X[300:], y[300:] + 7)


def test_what_cannot_be_combined_is_named() -> None:
    X, y = drawn(300, 0)
    with pytest.raises(ValueError, match="fit with by_class=True"):
        guarded().fit(X, y).predict_set(X)
    with pytest.raises(ValueError, match="cannot be combined with by_class=True"):
        small(MSPClassifier, by_class=True, confidence=0.9).fit(X, y)
    with pytest.raises(ValueError, match='need rule="calibrated"'):
        small(MSPClassifier, by_class=True, rule="own").fit(X, y)
