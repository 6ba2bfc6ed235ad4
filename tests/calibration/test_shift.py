"""Rows whose source has shifted."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from offmap import Calibrated, Guarded, load
from offmap.calibration import Reweighted, weighted_p_values
from offmap.collaborative import EntityGaussianDetector
from offmap.density import NearestNeighborDetector

RNG = np.random.default_rng(0)


@settings(deadline=None)
@given(seed=st.integers(0, 999), n=st.integers(1, 40))
def test_weighted_p_values_sum_the_weights(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    calibration, weights = rng.normal(size=n).round(1), rng.exponential(size=n)
    rows, own = rng.normal(size=9).round(1), rng.exponential(size=9)
    naive = [(w + sum(weights[calibration >= s])) / (w + sum(weights)) for s, w in zip(rows, own, strict=True)]
    np.testing.assert_allclose(weighted_p_values(calibration, weights, rows, own), naive)


def spread(rows: np.ndarray) -> np.ndarray:
    """A score whose size depends on the first feature: a shift of that feature moves the rate."""
    return np.abs(rows[:, 1]) * (1 + np.exp(rows[:, 0]))


def test_the_rate_holds_after_a_shift_that_breaks_the_plain_one() -> None:
    plain, weighted = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        old, recent, fresh = rng.normal(size=(1000, 2)), rng.normal(size=(1000, 2)), rng.normal(size=(1000, 2))
        recent[:, 0] += 1
        fresh[:, 0] += 1
        model = Calibrated(spread, alpha=0.1).calibrate(old)
        plain.append(model.assess(fresh).novel.mean())
        weighted.append(Reweighted(model).fit(old, recent).assess(fresh).novel.mean())
    assert np.mean(plain) > 0.2
    assert 0.07 < np.mean(weighted) < 0.12


def test_a_p_value_that_is_exactly_the_rate_is_flagged() -> None:
    model = Reweighted(Calibrated(spread).calibrate(RNG.normal(size=(500, 2))))
    model.fit(RNG.normal(size=(500, 2)), RNG.normal(size=(500, 2)))
    model.calibration_novelty_, model.weights_ = np.arange(19.0) / 1000, np.ones(19)
    model.coef_, model.intercept_ = np.zeros(2), 0.0
    verdict = model.assess(np.array([[0.0, 9.0], [0.0, 0.00875]]))
    assert np.asarray(verdict.p_value).tolist() == [0.05, 0.1]
    assert verdict.novel.tolist() == [True, False]


def test_a_row_has_the_same_p_value_alone_and_one_far_beyond_all_others_has_one_too() -> None:
    rng = np.random.default_rng(0)
    old, recent = rng.normal(size=(500, 7)), rng.normal(0.3, 1, size=(500, 7))
    model = Reweighted(Calibrated(lambda rows: np.abs(rows[:, 1])).calibrate(old)).fit(old, recent)
    alone = np.concatenate([model.p_value(recent[place : place + 1]) for place in range(100)])
    assert alone.tobytes() == model.p_value(recent)[:100].tobytes()
    assert model.p_value(np.array([[1e5] * 7, [-1e5] * 7])).tolist() == [1.0, 0.0]


def test_without_a_shift_all_rows_count() -> None:
    model = Calibrated(spread).calibrate(RNG.normal(size=(500, 2)))
    shifted = Reweighted(model).fit(RNG.normal(size=(500, 2)), RNG.normal(size=(500, 2)))
    assert shifted.effective_rows_ > 450


def test_recent_rows_elsewhere_are_refused() -> None:
    model = Calibrated(spread).calibrate(RNG.normal(size=(500, 2)))
    with pytest.raises(ValueError, match=r"count as \d+ after weighting.* a rate of 0\.05 needs 19 rows"):
        Reweighted(model).fit(RNG.normal(size=(500, 2)), RNG.normal(size=(500, 2)) + 5)
    with pytest.raises(ValueError, match="X_recent has 3 features"):
        Reweighted(model).fit(RNG.normal(size=(50, 2)), RNG.normal(size=(50, 3)))


def test_one_row_that_carries_much_of_the_weight_is_too_little() -> None:
    # Most recent rows lie among held-out rows; almost half of them lie where only one held-out row does.
    old, recent = RNG.normal(0, 0.1, size=(500, 2)), RNG.normal(0, 0.1, size=(500, 2))
    old[0, 0] += 10
    recent[:240, 0] += 10
    model = Calibrated(spread).calibrate(RNG.normal(size=(500, 2)))
    with pytest.raises(ValueError, match=r"count as 1\d after weighting.* a rate of 0\.05 needs 19 rows"):
        Reweighted(model).fit(old, recent)


def test_classifiers_name_the_unknown_and_models_are_saved_with_their_weights(tmp_path: Any) -> None:
    X, fresh = RNG.normal(size=(900, 2)), RNG.normal(size=(300, 2)) + 0.3
    guarded = Guarded(LogisticRegression(), alpha=0.1, random_state=0).fit(X[:600], (X[:600, 0] > 0).astype(int))
    found = Reweighted(guarded).fit(X[600:], fresh)
    assert ((found.predict(fresh) == -1) == found.assess(fresh).novel).all()
    detector = Reweighted(NearestNeighborDetector(random_state=0).fit(X[:600])).fit(X[600:], fresh)
    detector.save(tmp_path / "model.safetensors")
    assert load(tmp_path / "model.safetensors").p_value(fresh).tobytes() == detector.p_value(fresh).tobytes()


def test_the_file_of_a_foreign_model_is_loaded_with_it(tmp_path: Any) -> None:
    X, recent = RNG.normal(size=(900, 2)), RNG.normal(size=(300, 2)) + 0.3
    classifier = LogisticRegression().fit(X[:300], (X[:300, 0] > 0).astype(int))
    model = Reweighted(Guarded(classifier).calibrate(X[300:600])).fit(X[600:], recent)
    model.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors", model=classifier)
    assert loaded.assess(recent).to_frame().equals(model.assess(recent).to_frame())
    with pytest.raises(ValueError, match=r"saved without its .*LogisticRegression; give it as model="):
        load(tmp_path / "model.safetensors")
    other = LogisticRegression().fit(X[:300], (X[:300, 1] > 0).astype(int))
    with pytest.raises(ValueError, match="scores the rows stored in the file differently"):
        load(tmp_path / "model.safetensors", model=other)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X: Reweighted(LogisticRegression().fit(X, X[:, 0] > 0)).fit(X, X), "model must be one of Offmap"),
        (lambda X: Reweighted(Calibrated(spread, confidence=0.9).calibrate(X)).fit(X, X), "model has confidence"),
        (lambda X: Reweighted(_by_class(X)).fit(X, X), "model has by_class, which weights do not keep"),
        (lambda X: Reweighted(_plain(X)).fit(X[0], X), "X_calibration must be .* got shape"),
        (lambda X: Reweighted(_plain(X)).fit(X, [["a", "b"]]), "X_recent must be rows of numbers"),
        (lambda X: Reweighted(_plain(X)).fit(X, [[0.0, 1.0], [0.0, np.nan]]), "X_recent holds NaN .* in row 1"),
        (lambda X: Reweighted(_plain(X)).fit(X, X).assess(np.full((1, 2), np.inf)), "X holds NaN .* in row 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_weighted_is_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(np.random.default_rng(0).normal(size=(200, 2)))


def _plain(X: Any) -> Any:
    return Calibrated(spread).calibrate(X)


def _by_class(X: Any) -> Any:
    return Guarded(LogisticRegression(), by_class="actual", random_state=0).fit(X, (X[:, 0] > 0).astype(int))


def test_entities_are_not_reweighted() -> None:
    X = RNG.normal(size=(100, 2))
    model = EntityGaussianDetector(calibration=0.3, random_state=0).fit(X, np.arange(100) % 2)
    with pytest.raises(ValueError, match="model must be asked about rows alone"):
        Reweighted(model).fit(X, X)


def test_weights_are_one_on_average_whatever_the_sizes_of_the_samples() -> None:
    rng = np.random.default_rng(0)
    model = NearestNeighborDetector(random_state=0).fit(rng.normal(size=(300, 2)))
    shifted = Reweighted(model).fit(rng.normal(size=(2000, 2)), rng.normal(0.3, 1, size=(400, 2)))
    assert 0.9 < shifted.weights_.mean() < 1.1


def test_a_stronger_penalty_makes_the_weights_more_even() -> None:
    rng = np.random.default_rng(0)
    old, recent = rng.normal(size=(400, 2)), rng.normal(0.7, 1, size=(400, 2))
    model = Calibrated(spread).calibrate(old)
    rows = [Reweighted(model, penalty=penalty).fit(old, recent).effective_rows_ for penalty in (0.01, 1.0, 1000.0)]
    assert rows[0] < rows[1] < rows[2]
    assert rows[2] > 1.2 * rows[0]
