"""Training rows of which some are novel, copies, ties, and what is said of the promise."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import LocalOutlierFactor

from offmap import Calibrated, Guarded
from offmap.calibration import CalibrationWarning, Promise
from offmap.calibration.contamination import looks_normal, rows_to_keep
from offmap.calibration.notices import warn_of_uncovered
from offmap.calibration.split import Split
from offmap.collaborative import EntityForestDetector
from offmap.density import NearestNeighborDetector
from offmap.openset import MSPClassifier
from tests.estimators import small


def guarded(**given: Any) -> Guarded:
    return Guarded(LogisticRegression(), random_state=0, **given)


def contaminated(seed: int, share: float = 0.02) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training rows of which a share is novel, fresh normal rows and fresh novel ones."""
    rng = np.random.default_rng(seed)
    novel = rng.normal(size=(1000, 4))
    novel *= rng.uniform(10, 14, size=(1000, 1)) / np.linalg.norm(novel, axis=1, keepdims=True)
    train = rng.normal(size=(1500, 4))
    train[: int(share * 1500)] = novel[: int(share * 1500)]
    return train, rng.normal(size=(2000, 4)), novel[500:]


@pytest.mark.parametrize("contamination", [0.03, "auto"])
@pytest.mark.parametrize("kind", ["own", "foreign"])
def test_trimmed_rows_neither_train_nor_calibrate(contamination: Any, kind: str) -> None:
    train, fresh, novel = contaminated(0)
    make: Any = (
        NearestNeighborDetector if kind == "own" else lambda **p: Calibrated(LocalOutlierFactor(novelty=True), **p)
    )
    blind = make(alpha=0.005, calibration=0.5, random_state=0).fit(train)
    model = make(alpha=0.005, calibration=0.5, contamination=contamination, random_state=0).fit(train)
    assert (blind.predict(novel) == -1).mean() < 0.5
    assert (model.predict(novel) == -1).mean() > 0.95
    assert (model.predict(fresh) == -1).mean() < 0.04
    assert 0.019 < model.trimmed_ < 0.05
    assert "looked novel and were left out" in model.promise_in_words


def test_a_fitted_model_is_calibrated_without_the_rows_that_look_novel() -> None:
    train, fresh, novel = contaminated(0)
    fitted = LocalOutlierFactor(novelty=True).fit(fresh[:1000])
    blind = Calibrated(fitted, alpha=0.005).calibrate(train)
    model = Calibrated(fitted, alpha=0.005, contamination=0.03).calibrate(train)
    assert (blind.predict(novel) == -1).mean() < 0.5
    assert (model.predict(novel) == -1).mean() > 0.95
    assert model.trimmed_ == pytest.approx(0.03)
    assert len(model.calibration_novelty_) == 1455
    assert "0.03 of the rows looked novel and were left out" in model.promise_in_words
    assert Calibrated(fitted, contamination="auto").calibrate(train).trimmed_ > 0.019


def test_rows_that_recalibrate_are_not_trimmed_and_the_words_say_nothing_of_it() -> None:
    train, fresh, _ = contaminated(0)
    model = NearestNeighborDetector(contamination=0.03, random_state=0).fit(train).recalibrate(fresh)
    assert len(model.calibration_novelty_) == len(fresh)
    assert "left out" not in model.promise_in_words


def test_no_row_is_judged_by_a_model_that_was_trained_on_it() -> None:
    judged: list[int] = []

    def score(split: Split) -> np.ndarray:
        assert len(split.train) > 40
        assert not set(split.train) & set(split.held_out)
        judged.extend(split.held_out)
        return split.held_out.astype(float)

    kept = rows_to_keep(score, 101, 0.1, np.random.default_rng(0))
    assert sorted(judged) == list(range(101))
    assert len(kept) == 91
    assert kept.mean() < 48  # the score of a row is its index, so that the last rows are left out


def test_without_novel_rows_auto_trims_hardly_any() -> None:
    model = NearestNeighborDetector(contamination="auto", random_state=0).fit(contaminated(0, share=0.0)[0])
    assert model.trimmed_ < 0.02


def test_auto_leaves_out_what_is_more_than_three_interquartile_ranges_above_the_third_quartile() -> None:
    # Each half has its quartiles near 25 and 75, so that the limit is about 225.
    novelty = np.r_[np.tile(np.arange(100.0), 2), 180.0, 190.0, 260.0, 270.0]
    kept = rows_to_keep(lambda split: novelty[split.held_out], len(novelty), "auto", np.random.default_rng(0))
    assert sorted(set(range(len(novelty))) - set(kept.tolist())) == [202, 203]


@pytest.mark.parametrize("infinite", [1, 30, 99])
def test_auto_measures_finite_scores_and_leaves_infinite_ones_out(infinite: int) -> None:
    novelty = np.r_[np.arange(100.0 - infinite), np.full(infinite, np.inf)]
    assert looks_normal(novelty, "auto").tolist() == [True] * (100 - infinite) + [False] * infinite
    with pytest.raises(ValueError, match=r'contamination="auto" needs finite scores.* all 9 rows.* as a share'):
        looks_normal(np.full(9, np.inf), "auto")


def test_copies_are_noticed() -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    with pytest.warns(CalibrationWarning, match="50% of the rows are copies of other rows"):
        NearestNeighborDetector(random_state=0).fit(np.concatenate([X, X]))


def test_ties_are_noticed_and_can_be_broken_at_random() -> None:
    rng = np.random.default_rng(0)
    score = lambda rows: (rows[:, 0] > 0).astype(float)  # noqa: E731
    with pytest.warns(CalibrationWarning, match=r"share one novelty, so that the rate of false alarms is 0\.0025"):
        model = Calibrated(score).calibrate(rng.normal(size=(399, 1)))
    fresh = rng.normal(size=(4000, 1))
    assert (model.p_value(fresh) <= 0.05).sum() == 0
    assert (model.p_value(fresh, random_ties=0) <= 0.05).mean() == pytest.approx(0.05, abs=0.02)
    assert (model.p_value(fresh, random_ties=0) == model.p_value(fresh, random_ties=0)).all()
    assert "the rate that is attained is 0.0025" in model.promise_in_words
    with pytest.raises(ValueError, match="random_ties cannot be combined with confidence"):
        Promise(confidence=0.9).fit(np.arange(99.0)).p_value([1.0], random_ties=0)


def test_entities_of_four_rows_keep_the_rate() -> None:
    rates = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        centres, entities = 2 * rng.normal(size=(100, 5)), np.repeat(np.arange(100), 4)
        model = EntityForestDetector(n_estimators=10, random_state=seed)
        model.fit(centres[entities] + rng.normal(size=(400, 5)), entities)
        asked = rng.integers(100, size=2000)
        rates.append((model.predict(centres[asked] + rng.normal(size=(2000, 5)), asked) == -1).mean())
    # The rows of entities that calibrate must not be trained on fewer rows than the others: else it is 0.25.
    assert 0.02 < np.mean(rates) < 0.09


def test_rare_classes_keep_the_rate() -> None:
    rates = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        frequency = 1 / np.arange(1, 41) ** 1.2
        y, fresh = (rng.choice(40, p=frequency / frequency.sum(), size=rows) for rows in (800, 3000))
        centres = 2 * rng.normal(size=(40, 8))
        model = small(MSPClassifier, calibration=0.3, epochs=8, random_state=seed)
        model.fit(centres[y] + rng.normal(size=(800, 8)), y)
        fresh = fresh[np.bincount(y, minlength=40)[fresh] > 1]
        rates.append(model.assess(centres[fresh] + rng.normal(size=(len(fresh), 8))).novel.mean())
    # One rate has a standard deviation of 0.014, their mean 0.005.
    assert 0.035 < np.mean(rates) < 0.062


def test_classes_that_no_row_can_be_held_out_of_are_named() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.r_[np.arange(50) % 2, np.arange(2, 12)]
    with pytest.warns(CalibrationWarning, match=r"10 of 12 classes or entities \(2, 3, 4, …\), with 17% of the rows"):
        model = small(MSPClassifier, calibration=0.4).fit(X, y)
    assert "It does not cover rows of these" in model.promise_in_words
    assert model.uncovered_ == [str(code) for code in range(2, 12)]


@pytest.mark.parametrize("calibration", [0.4, "cv"])
@pytest.mark.parametrize("make", [lambda **given: small(MSPClassifier, **given), guarded], ids=["MSP", "Guarded"])
def test_a_class_of_one_row_is_named_by_the_promise_until_rows_of_it_recalibrate(make: Any, calibration: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(101, 3)), np.r_[np.arange(100) % 2, 7]
    model = make(calibration=calibration).fit(X, y)
    assert model.uncovered_ == ["7"]
    assert "It does not cover rows of these, which had too few rows to hold any out: 7." in model.promise_in_words
    assert "does not cover" not in model.recalibrate(rng.normal(size=(50, 3))).promise_in_words
    assert "does not cover" not in make(calibration=calibration).fit(X[:-1], y[:-1]).promise_in_words


def test_classes_of_one_row_are_told_where_they_are_more_than_the_rate() -> None:
    groups, names = np.r_[np.arange(92) % 2, np.arange(2, 10)], np.arange(10)
    warn_of_uncovered(groups, np.arange(2, 10), names, alpha=0.08)
    with pytest.warns(CalibrationWarning, match="with 8% of the rows"):
        warn_of_uncovered(groups, np.arange(2, 10), names, alpha=0.05)


def test_the_promise_is_told_in_words() -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    for settings, words in (
        ({}, "at most 0.05, over the draw of the 30 held-out rows"),
        ({"calibration": "cv"}, "about 0.05 (300 rows, 5 models; at most twice as much is proven)"),
        ({"confidence": 0.9, "calibration": 0.5}, "by this very model, with confidence 0.9 (150 held-out rows)"),
    ):
        assert words in NearestNeighborDetector(**settings, random_state=0).fit(X).promise_in_words
    own = small(MSPClassifier, rule="own").fit(X, np.arange(300) % 2)
    assert own.promise_in_words == "No false-alarm rate is promised: the threshold is the method's own."
