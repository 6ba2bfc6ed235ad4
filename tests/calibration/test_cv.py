"""CV+: every row trains and calibrates."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import IsolationForest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from offmap import Calibrated, Guarded, load
from offmap.calibration.cv import fold_splits
from offmap.calibration.surprise import surprise
from offmap.density import MahalanobisDetector, NearestNeighborDetector
from offmap.openset import LOFClassifier, MSPClassifier
from offmap.persist import ModelFileError
from offmap.scores import Outputs
from tests.estimators import small

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)), np.arange(60) % 3
FRESH, NOVEL = RNG.normal(size=(500, 3)), RNG.normal(8, 1, size=(20, 3))


def models() -> list[Any]:
    return [
        NearestNeighborDetector(calibration="cv", random_state=0).fit(X),
        small(MSPClassifier, calibration="cv").fit(X + 4 * Y[:, None], Y),
        Calibrated(IsolationForest(n_estimators=20), calibration="cv", random_state=0).fit(X),
        Guarded(LogisticRegression(), calibration="cv", random_state=0).fit(X + 4 * Y[:, None], Y),
    ]


MODELS = models()


def naive_p_values(model: Any, rows: np.ndarray) -> np.ndarray:
    """The formula, with one loop per row."""
    n = sum(len(member.calibration_novelty_) for member in model.members_)
    scores = [member.novelty(rows) for member in model.members_]
    counts = [
        sum(int((m.calibration_novelty_ >= s[i]).sum()) for m, s in zip(model.members_, scores, strict=True))
        for i in range(len(rows))
    ]
    return (1 + np.array(counts)) / (n + 1)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_p_value_is_that_of_the_formula_and_decides(model: Any) -> None:
    rows = np.concatenate([X, FRESH, NOVEL])
    verdict = model.assess(rows)
    np.testing.assert_allclose(verdict.p_value, naive_p_values(model, rows))
    assert (verdict.novel == (verdict.p_value <= 0.05)).all()
    assert (verdict.novel == (verdict.novelty > model.threshold_)).all()
    assert (len(model.members_), len(model.calibration_novelty_), model.promised_rate) == (5, 60, 0.05)
    assert (model.at(alpha=0.2).assess(rows).novel == (verdict.p_value <= 0.2)).all()


@settings(deadline=None)
@given(seed=st.integers(0, 9999), folds=st.integers(1, 5))
def test_the_surprise_orders_as_the_p_value_and_tells_more_apart(seed: int, folds: int) -> None:
    rng = np.random.default_rng(seed)
    # Rounded, so that rows tie with held-out rows and these with one another.
    calibrations = [np.sort(rng.normal(size=rng.integers(1, 9)).round(1)) for _ in range(folds)]
    rows = [np.r_[rng.normal(size=30).round(1), 7.0, 8.0, 1e9, np.inf, -np.inf] for _ in range(folds)]
    n = sum(map(len, calibrations))
    naive = 1 + np.sum([[np.sum(c >= s) for s in r] for c, r in zip(calibrations, rows, strict=True)], axis=0)
    found = surprise(calibrations, rows)
    assert (np.ceil((n + 1) * np.exp(-found)).clip(1) == naive).all()
    assert found[30] < found[31] < found[32] <= found[33]


def test_more_novel_to_every_model_is_a_larger_surprise() -> None:
    calibrations = [np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0])]
    grid = np.linspace(-5, 40, 400)
    assert (np.diff(surprise(calibrations, [grid, grid])) >= 0).all()


def test_every_row_is_held_out_once_and_no_class_is_missing_in_training() -> None:
    groups = np.repeat([0, 1, 2], [1, 2, 30])
    splits = fold_splits(groups, 5, np.random.default_rng(0))
    assert sorted(np.concatenate([split.held_out for split in splits])) == list(range(1, 33))
    for split in splits:
        assert set(groups[split.train]) == {0, 1, 2}
        assert not set(split.train) & set(split.held_out)


def test_each_class_is_spread_evenly_over_the_folds_and_each_fold_draws_for_itself() -> None:
    groups = np.repeat([0, 1, 2], [4, 9, 31])
    held_out = [split.held_out for split in fold_splits(groups, 4, np.random.default_rng(0))]
    for group in range(3):
        counts = [int((groups[rows] == group).sum()) for rows in held_out]
        assert max(counts) - min(counts) <= 1
    assert len({member.random_state for member in MODELS[0].members_}) == 5


def test_sixty_rows_keep_five_percent_where_a_share_cannot() -> None:
    rates = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        model = NearestNeighborDetector(calibration="cv", random_state=seed).fit(rng.normal(size=(60, 4)))
        rates.append((model.predict(rng.normal(size=(400, 4))) == -1).mean())
    # The standard deviation of one rate is about 0.028, that of the mean of forty 0.0045.
    assert 0.03 < np.mean(rates) < 0.065


def test_it_is_saved_in_one_file(tmp_path: Any) -> None:
    for model in (MODELS[0], MODELS[1], small(LOFClassifier, calibration="cv", by_class="predicted").fit(X, Y)):
        model.save(tmp_path / "model.safetensors")
        again = load(tmp_path / "model.safetensors")
        assert again.novelty(FRESH).tobytes() == model.novelty(FRESH).tobytes()
        assert again.p_value(FRESH).tobytes() == model.p_value(FRESH).tobytes()


@pytest.mark.parametrize(("model", "attribute"), [(MODELS[2], "estimator_"), (MODELS[3], "classifier_")])
def test_foreign_models_of_the_folds_are_recognised_one_by_one(model: Any, attribute: str, tmp_path: Any) -> None:
    path = tmp_path / "model.safetensors"
    model.save(path)
    foreign = [getattr(member, attribute) for member in model.members_]
    again = load(path, model=foreign)
    assert again.novelty(FRESH).tobytes() == model.novelty(FRESH).tobytes()
    assert again.at(alpha=0.2).p_value(NOVEL).tobytes() == model.p_value(NOVEL).tobytes()
    with pytest.raises(ModelFileError, match="it scores the rows stored in the file differently"):
        load(path, model=foreign[1:] + foreign[:1])
    for wrong in (None, foreign[0], foreign[:4]):
        with pytest.raises(ModelFileError, match=r"models? of its folds|saved without its"):
            load(path, model=wrong)


def test_outputs_of_the_folds_need_no_model(tmp_path: Any) -> None:
    outputs = Outputs(logits=X + 4 * np.eye(3)[Y])
    model = Guarded(calibration="cv", by_class="predicted", random_state=0).fit(outputs, Y)
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.p_value(Outputs(logits=FRESH)).tobytes() == model.p_value(Outputs(logits=FRESH)).tobytes()


def test_each_fold_has_an_encoder_of_its_own() -> None:
    texts = [f"common word{number}" for number in range(60)]
    model = NearestNeighborDetector(encoder=TfidfVectorizer(), calibration="cv", random_state=0).fit(texts)
    # The word of each of the 48 training rows, and the one that they share.
    assert [len(member.encoder_.vocabulary_) for member in model.members_] == [49] * 5
    assert len(model.novelty(texts)) == 60


def test_rows_that_come_later_calibrate_all_models() -> None:
    model = MODELS[0].recalibrate(FRESH)
    assert len(model.calibration_novelty_) == 500
    assert 0.02 < (model.predict(np.random.default_rng(9).normal(size=(1000, 3))) == -1).mean() < 0.09


def test_the_same_seed_gives_the_same_bytes_and_a_new_fit_forgets_the_folds() -> None:
    one, two = (NearestNeighborDetector(calibration="cv", random_state=3).fit(X) for _ in range(2))
    assert one.novelty(FRESH).tobytes() == two.novelty(FRESH).tobytes()
    one.set_params(calibration=0.4).fit(X)
    assert not hasattr(one, "members_")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NearestNeighborDetector(calibration="cv", confidence=0.9).fit(X), "confidence needs rows held out"),
        (lambda: Calibrated(IsolationForest(), calibration="cv", confidence=0.9).fit(X), "confidence needs rows"),
        (lambda: NearestNeighborDetector(calibration="cv", folds=1).fit(X), "folds must be an integer at least 2"),
        (lambda: NearestNeighborDetector(calibration="cv").fit(X[:2]), "fewer than 2 rows to train on"),
        (lambda: small(NearestNeighborDetector, calibration="loo").fit(X), "calibration must be a number .* or 'cv'"),
    ],
)
def test_what_cannot_be_is_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_within_a_step_the_surprise_grows_with_the_novelty_to_any_model() -> None:
    folds = [np.array([1.0, 3.0]), np.array([2.0, 4.0])]
    for grows in range(2):
        rows = [np.full(3, 2.5), np.full(3, 2.5)]
        rows[grows] = np.array([2.1, 2.5, 2.9])
        found = surprise(folds, rows)
        assert (np.diff(found) > 0).all()
        assert np.ptp(np.ceil(5 * np.exp(-found))) == 0


def test_rows_that_recalibrate_the_models_of_the_folds_keep_the_rate_of_held_out_rows() -> None:
    model = NearestNeighborDetector(calibration="cv", random_state=0).fit(X)
    assert "5 models; at most twice as much is proven" in model.promise_in_words
    assert "5 models; at most twice as much is proven" in model.at(alpha=0.1).promise_in_words
    assert "at most 0.05, over the draw of the 500 held-out rows" in model.recalibrate(FRESH).promise_in_words


def test_folds_are_drawn_at_random_so_that_rows_in_a_rhythm_are_spread() -> None:
    groups = np.zeros(100, dtype=np.int64)
    one, two = (fold_splits(groups, 5, np.random.default_rng(seed)) for seed in (0, 1))
    for split in (*one, *two):
        assert np.bincount(split.held_out % 5, minlength=5).max() < 15
    assert any((a.held_out != b.held_out).any() for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("detector", [MahalanobisDetector, NearestNeighborDetector])
def test_shares_of_features_need_one_model(detector: Any) -> None:
    with pytest.raises(ValueError, match='contributions needs one model; fit with calibration as a share, not "cv"'):
        detector(calibration="cv", random_state=0).fit(X).contributions(X[:2])


@pytest.mark.parametrize("make", [lambda: NearestNeighborDetector(), lambda: Calibrated(IsolationForest())])
def test_a_fit_in_folds_keeps_nothing_of_an_earlier_fit(make: Any, tmp_path: Any) -> None:
    model = make().set_params(random_state=0, calibration=0.3).fit(100 * FRESH).set_params(calibration="cv").fit(X)
    fresh = make().set_params(random_state=0, calibration="cv").fit(X)
    assert set(vars(model)) - {"_distance"} == set(vars(fresh))
    assert (model.novelty(FRESH) == fresh.novelty(FRESH)).all()
    model.save(tmp_path / "model.safetensors")


def test_rows_that_a_shard_would_trim_are_refused() -> None:
    with pytest.raises(ValueError, match="leave out novel rows before, and contamination at 0"):
        MahalanobisDetector(contamination=0.1).fit_shard(X)
