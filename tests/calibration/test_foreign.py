"""Any outlier detector and any classifier can have the promise."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, OneClassSVM

from offmap import Calibrated, Guarded
from offmap.calibration import CalibrationWarning

Array = NDArray[Any]
RNG = np.random.default_rng(0)
X, NOVEL = RNG.normal(size=(900, 4)), RNG.normal(6, 1, size=(50, 4))
Y = (X[:, 0] > 0).astype(int)


class Distance(OutlierMixin, BaseEstimator):
    """Made as PyOD makes detectors: ``decision_function`` is higher for novel rows."""

    __module__ = "pyod.models.distance"

    def fit(self, X: Array, y: object = None) -> "Distance":
        self.mean_ = np.mean(X, axis=0)
        return self

    def decision_function(self, X: Array) -> Array:
        return np.linalg.norm(np.asarray(X) - self.mean_, axis=1)


DETECTORS = [
    IsolationForest(n_estimators=30),
    LocalOutlierFactor(novelty=True),
    OneClassSVM(),
    make_pipeline(StandardScaler(), PCA(3), IsolationForest(n_estimators=30)),
    Distance(),
    make_pipeline(StandardScaler(), Distance()),
]


@pytest.mark.parametrize("estimator", DETECTORS, ids=lambda estimator: type(estimator).__name__)
def test_any_detector_keeps_the_rate_and_finds_novel_rows(estimator: Any) -> None:
    model = Calibrated(estimator, alpha=0.1, calibration=0.5, random_state=0).fit(X[:500])
    verdict = model.assess(X[500:])
    assert 0.05 < verdict.novel.mean() < 0.16
    assert (model.predict(NOVEL) == -1).mean() > 0.9
    assert (verdict.novel == (model.decision_function(X[500:]) < 0)).all()
    assert verdict.p_value is not None
    assert (verdict.novel == (verdict.p_value <= 0.1)).all()


@pytest.mark.parametrize("estimator", DETECTORS, ids=lambda estimator: type(estimator).__name__)
def test_a_detector_that_is_fitted_is_calibrated_as_it_is(estimator: Any) -> None:
    estimator.fit(X[:300])
    model = Calibrated(estimator, alpha=0.1).calibrate(X[300:600])
    assert model.estimator_ is estimator
    assert 0.05 < model.assess(X[600:]).novel.mean() < 0.16


@pytest.mark.parametrize(
    "wrap",
    [
        lambda detector: make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), detector)),
        lambda detector: GridSearchCV(detector, {}, scoring=lambda *_: 0.0, cv=2),
        lambda detector: FrozenEstimator(detector.fit(X[:300])),
    ],
    ids=["nested pipeline", "search", "frozen"],
)
@pytest.mark.parametrize("detector", [Distance(), IsolationForest(n_estimators=30)], ids=["PyOD", "scikit-learn"])
def test_a_wrapped_detector_scores_in_the_direction_of_the_one_inside(detector: Any, wrap: Any) -> None:
    model = Calibrated(wrap(detector).fit(X[:300], None), alpha=0.1).calibrate(X[300:])
    assert (model.predict(NOVEL) == -1).mean() > 0.9


def test_a_function_of_rows_is_a_detector() -> None:
    model = Calibrated(lambda rows: np.linalg.norm(rows, axis=1), alpha=0.1).calibrate(X[:300])
    assert (model.predict(NOVEL) == -1).all()


def test_the_same_seed_gives_the_same_model_also_inside_a_pipeline() -> None:
    noisy = make_pipeline(PCA(2, svd_solver="randomized"), IsolationForest(n_estimators=10))
    one, two = (Calibrated(noisy, random_state=3).fit(X).novelty(NOVEL) for _ in range(2))
    assert one.tobytes() == two.tobytes()


def test_frames_keep_their_columns() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = Calibrated(IsolationForest(n_estimators=10), random_state=0).fit(frame)
    assert model.estimator_.feature_names_in_.tolist() == list("abcd")
    assert len(model.assess(frame[:5])) == 5


@pytest.mark.parametrize("score", ["max_softmax", "max_logit", "energy"])
def test_any_classifier_rejects_at_the_promised_rate(score: Any) -> None:
    model = Guarded(LogisticRegression(), novelty_score=score, alpha=0.1, calibration=0.5, random_state=0)
    model.fit(X[:500], Y[:500])
    verdict = model.assess(X[500:])
    assert 0.05 < verdict.novel.mean() < 0.16
    assert verdict.label is not None
    assert ((verdict.label == -1) == verdict.novel).all()
    assert (model.predict_closed(X[500:]) == Y[500:]).mean() > 0.85


def test_a_classifier_that_is_fitted_is_calibrated_as_it_is() -> None:
    names = np.array(["ant", "bee"])[Y]
    forest = RandomForestClassifier(20, random_state=0).fit(X[:300], names[:300])
    model = Guarded(forest, alpha=0.1).calibrate(X[300:600])
    answers = model.predict(X[600:])
    assert model.classifier_ is forest
    assert set(answers) <= {"ant", "bee", "unknown"}
    assert (answers == "unknown").mean() < 0.16


def test_a_score_of_ones_own_decides() -> None:
    model = Guarded(LogisticRegression(), novelty_score=lambda classifier, rows: np.linalg.norm(rows, axis=1))
    assert (model.fit(X, Y).predict(NOVEL) == -1).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Calibrated(LocalOutlierFactor(n_neighbors=3)).fit(X), "LocalOutlierFactor has them with novelty=True"),
        (lambda: Calibrated(3).calibrate(X), "estimator int must have score_samples or decision_function"),
        (lambda: Calibrated(IsolationForest(), alpha=2.0).fit(X), "alpha must be a number between 0 and 1"),
        (lambda: Calibrated(lambda rows: rows).calibrate(X), r"one score per row, shape \(900,\); got shape"),
        (lambda: Calibrated(lambda rows: np.full(len(rows), np.nan)).calibrate(X), "NaN as the score of row 0"),
        (lambda: Calibrated(IsolationForest()).fit(X[:1]), "fit needs at least 2"),
        (lambda: Guarded(LogisticRegression()).fit(X, np.zeros(len(X))), "one class only"),
        (lambda: Guarded(LogisticRegression()).fit(X, Y[:-1]), "inconsistent numbers of samples"),
        (lambda: Guarded(LinearSVC()).fit(X, Y).predict(NOVEL[:, :2]), "features"),
        (
            lambda: Guarded(DummyClassifier(), novelty_score="energy").fit(X, Y),
            "all 270 calibration rows have the same score",
        ),
        (
            lambda: Calibrated(LogisticRegression()).fit(X),
            "estimator is the classifier LogisticRegression; put it into",
        ),
        (
            lambda: Calibrated(make_pipeline(PCA(2), LogisticRegression()).fit(X, Y)).calibrate(X),
            "estimator is the classifier LogisticRegression; put it into Guarded",
        ),
        (
            lambda: Calibrated(GridSearchCV(LogisticRegression(), {}).fit(X, Y)).calibrate(X),
            "estimator is the classifier LogisticRegression; put it into Guarded",
        ),
        (lambda: Calibrated(LinearRegression()).fit(X), "estimator LinearRegression must have score_samples or"),
        (lambda: Calibrated(make_pipeline(PCA(2), LinearRegression())).fit(X), "must have score_samples or"),
        (lambda: Calibrated(LocalOutlierFactor()).fit(X), "LocalOutlierFactor has them with novelty=True"),
        (lambda: Guarded(IsolationForest()).fit(X, Y), "classifier IsolationForest has no classes_; put an outlier"),
        (lambda: Guarded(OneClassSVM().fit(X)).calibrate(X), "classifier OneClassSVM has no classes_"),
        (lambda: Calibrated(lambda rows: ["novel"] * len(rows)).calibrate(X), "one number per row as its score"),
        (
            lambda: Guarded(RandomForestClassifier(9), novelty_score="energy").fit(X, Y),
            "Energy reads the energy, which is the same for all rows",
        ),
        (
            lambda: Guarded(RandomForestClassifier(9), novelty_score="rank_mean").fit(X, Y),
            "RankMean reads the energy, which is the same for all rows",
        ),
    ],
)
def test_what_cannot_be_calibrated_is_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_models_that_are_not_fitted_say_so() -> None:
    for model in (Calibrated(IsolationForest()), Guarded(LogisticRegression())):
        with pytest.raises(NotFittedError):
            model.assess(X)
    with pytest.raises(NotFittedError):
        Guarded(LogisticRegression()).calibrate(X)


def test_scores_that_depend_on_the_other_rows_are_noticed() -> None:
    # As PyOD's ECOD: the rows to score take part in the ranks.
    def ranked(rows: Array) -> Array:
        return np.abs(np.asarray(rows)[:, 0]).argsort().argsort() / len(rows)

    with pytest.warns(CalibrationWarning, match="depends on the rows that are scored with it"):
        Calibrated(ranked).calibrate(X)


def test_a_score_that_is_nan_is_refused_with_its_row() -> None:
    model = Calibrated(lambda rows: np.asarray(rows)[:, 0]).calibrate(np.arange(40.0)[:, None])
    with pytest.raises(ValueError, match="the model gave NaN as the score of row 1"):
        model.novelty([[0.0], [np.nan], [2.0]])


def test_a_forest_that_gives_probabilities_only_has_scores_that_need_no_energy() -> None:
    for score in ("max_softmax", "max_logit", "gen", "auto"):
        model = Guarded(RandomForestClassifier(50, random_state=0), novelty_score=score, alpha=0.2, random_state=0)
        assert model.fit(X, Y).assess(NOVEL).novel.shape == (50,)


def test_an_offmap_classifier_is_a_detector_too() -> None:
    guarded = Guarded(LogisticRegression(), random_state=0).fit(X[:300], Y[:300])
    model = Calibrated(guarded, alpha=0.1).calibrate(X[300:600])
    assert (model.novelty(NOVEL) == guarded.novelty(NOVEL)).all()


def test_fewer_rows_than_two_hundred_with_a_score_of_two_values_are_noticed() -> None:
    with pytest.warns(CalibrationWarning, match=r"share one novelty, so that the rate of false alarms is 0\.0099"):
        Calibrated(lambda rows: (rows[:, 0] > 0).astype(float)).calibrate(X[:100])


def test_rows_that_cannot_recalibrate_are_refused() -> None:
    model = Calibrated(lambda rows: np.asarray(rows)[:, 0]).calibrate(X)
    with pytest.raises(ValueError, match="X has 0 samples; recalibrate needs at least 1"):
        model.recalibrate(X[:0])
    with pytest.raises(ValueError, match="all 30 calibration rows have the same score, 0"):
        model.recalibrate(np.zeros((30, 4)))


@pytest.mark.parametrize("layout", ["coo", "csc", "csr"])
def test_sparse_rows_of_any_layout_are_those_of_the_dense_array(layout: Any) -> None:
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(300, 4)) * rng.binomial(1, 0.7, size=(300, 4))
    sparse = csr_matrix(dense).asformat(layout)
    y = np.arange(300) % 3
    for model in (Calibrated(IsolationForest(), random_state=0), Guarded(LogisticRegression(), random_state=0)):
        expected = model.fit(dense, y).novelty(dense)
        assert model.fit(sparse, y).novelty(sparse) == pytest.approx(expected)
    forest = IsolationForest(random_state=0).fit(dense)
    assert Calibrated(forest).calibrate(sparse).threshold_ == Calibrated(forest).calibrate(dense).threshold_
    classifier = LogisticRegression().fit(dense, y)
    thresholds = [Guarded(classifier).calibrate(rows, y).threshold_ for rows in (sparse, dense)]
    assert thresholds[0] == pytest.approx(thresholds[1])
