"""Post-hoc scores on anybody's classifier: scikit-learn's, torch's, or arrays computed elsewhere; and their files."""

import warnings
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from torch import nn

import offmap
from offmap import Calibrated, Guarded
from offmap.calibration import CalibrationWarning
from offmap.metrics import auroc
from offmap.persist import ModelFileError
from offmap.scores import SCORE_NAMES, KNearest, Outputs

DIGITS = load_digits()
X, Y = DIGITS.data / 16, DIGITS.target
KNOWN = Y < 7
THIRD = np.arange(len(Y)) % 3 == 0
TRAIN, FRESH, NOVEL = np.flatnonzero(KNOWN & ~THIRD), np.flatnonzero(KNOWN & THIRD), np.flatnonzero(~KNOWN)


class Net(nn.Module):
    """A small network whose weights come from scikit-learn: PCA, then a linear classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 20), nn.Dropout(0.5))
        self.head = nn.Linear(20, 7)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(rows))


class Unused(Net):
    """A network with a layer that it does not run."""

    def __init__(self) -> None:
        super().__init__()
        self.spare = nn.Linear(20, 3)


@pytest.fixture(scope="module")
def pipeline() -> Any:
    return make_pipeline(PCA(20, random_state=0), LogisticRegression(max_iter=500)).fit(X[TRAIN], Y[TRAIN])


@pytest.fixture(scope="module")
def net(pipeline: Any) -> Net:
    pca, linear = pipeline
    net = Net()
    weights = {
        "body.0.weight": pca.components_,
        "body.0.bias": -pca.components_ @ pca.mean_,
        "head.weight": linear.coef_,
        "head.bias": linear.intercept_,
    }
    net.load_state_dict({name: torch.from_numpy(values) for name, values in weights.items()})
    return net.train()


@pytest.mark.parametrize("score", [*SCORE_NAMES, "auto"])
def test_every_score_keeps_the_rate_and_finds_unknown_digits(score: Any) -> None:
    classifier = make_pipeline(StandardScaler(), PCA(20, random_state=0), LogisticRegression(max_iter=500))
    model = Guarded(classifier, novelty_score=score, alpha=0.1, random_state=0).fit(X[TRAIN], Y[TRAIN])
    fresh, novel = model.assess(X[FRESH]), model.assess(X[NOVEL])
    assert 0.04 < fresh.novel.mean() < 0.2
    assert auroc(fresh.novelty, novel.novelty) > (0.7 if score == "mahalanobis" else 0.8)
    assert fresh.proba is not None
    assert (model.predict_closed(X[FRESH]) == Y[FRESH]).mean() > 0.9


def test_a_pipeline_a_module_and_arrays_give_the_same_scores(pipeline: Any, net: Net) -> None:
    features, logits = pipeline[:-1].transform(X), pipeline.decision_function(X)
    by_pipeline = Guarded(pipeline, novelty_score="vim").calibrate(X[FRESH], reference=X[TRAIN], y_reference=Y[TRAIN])
    by_module = Guarded(net, novelty_score="vim", features="body").calibrate(
        X[FRESH], reference=X[TRAIN], y_reference=Y[TRAIN]
    )
    outputs = Outputs(features, logits)
    by_arrays = Guarded(novelty_score="vim").calibrate(
        outputs.take(FRESH), reference=outputs.take(TRAIN), y_reference=Y[TRAIN]
    )
    expected = by_pipeline.novelty(X[NOVEL])
    np.testing.assert_allclose(by_module.novelty(X[NOVEL]), expected, rtol=1e-3)
    np.testing.assert_allclose(by_arrays.novelty(outputs.take(NOVEL)), expected, rtol=1e-6)
    assert (by_arrays.predict(outputs.take(NOVEL)) == by_pipeline.predict(X[NOVEL])).all()


def test_a_module_is_left_as_it_was_and_scores_rows_alone_as_together(net: Net) -> None:
    net.body.eval()
    model = Guarded(net, novelty_score=KNearest(n_neighbors=3), features="body", classes=list("abcdefg"))
    model.calibrate(X[FRESH], reference=torch.from_numpy(X[TRAIN]))
    assert net.training
    assert not net.body.training
    assert not net.body._forward_hooks
    whole = model.novelty(X[:300])
    assert np.concatenate([model.novelty(X[:7]), model.novelty(X[7:300])]).tobytes() == whole.tobytes()
    assert set(model.predict(X[FRESH])) <= {*"abcdefg", "unknown"}
    net.train()


def test_a_module_takes_frames_lists_and_rows_in_reverse_order(net: Net) -> None:
    model = Guarded(net).calibrate(X[FRESH])
    expected = model.novelty(X[NOVEL])
    for rows in (pd.DataFrame(X[NOVEL]), X[NOVEL].tolist(), torch.from_numpy(X[NOVEL])):
        assert (model.novelty(rows) == expected).all()
    assert (model.novelty(X[NOVEL][::-1])[::-1] == expected).all()


def test_arrays_can_be_split_by_fit(pipeline: Any) -> None:
    outputs = Outputs(pipeline[:-1].transform(X), pipeline.decision_function(X))
    model = Guarded(novelty_score="k_nearest", random_state=0).fit(outputs.take(FRESH), Y[FRESH])
    assert model.classes_.tolist() == list(range(7))
    assert (model.predict(outputs.take(NOVEL)) == -1).mean() > 0.5


def test_convolutional_features_are_averaged_over_places() -> None:
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(4 * 36, 2))
    rows = np.random.default_rng(0).normal(size=(40, 1, 8, 8)).astype(np.float32)
    model = Guarded(net, novelty_score="k_nearest", features="0").calibrate(rows[:20], reference=rows[20:])
    assert model.score_ is not None
    assert vars(model.score_)["rows_"].shape == (20, 4)


def constant(rows: Any) -> Any:
    return np.ones(len(rows))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda net: Guarded(net, novelty_score="vim", features="boddy").calibrate(X, reference=X),
         "features must name a layer of Net: 'body', 'body.0', 'body.1', 'head'; got 'boddy'"),
        (lambda net: Guarded(net, logits="had").calibrate(X), "logits must name a layer of Net"),
        (lambda net: Guarded(net, novelty_score="k_nearest").calibrate(X, reference=X),
         "KNearest needs the model's features"),
        (lambda net: Guarded(net, novelty_score="k_nearest", features="body").calibrate(X),
         "give calibrate reference="),
        (lambda net: Guarded(net).fit(X, Y), "fit cannot train a torch module"),
        (lambda net: Guarded(net, classes=["a", "b"]).calibrate(X), "logits have 7 columns, but there are 2 classes"),
        (lambda net: Guarded(net, novelty_score="vim", features="body").calibrate(X, reference=X, y_reference=Y),
         r"y_reference \(y of fit\) holds the label 7, which the classifier never saw; it knows 0, 1"),
        (lambda net: Guarded(net, novelty_score="mahalanobis", features="body").calibrate(X, reference=X),
         "needs the classes of the known rows"),
        (lambda net: Guarded(net, novelty_score=cast(Any, "distance")).calibrate(X), "novelty_score must be"),
        (lambda net: Guarded(net, novelty_score="vim", features="body").calibrate(X, reference=X, y_reference=Y[:9]),
         "y_reference must hold the class of each row of reference, which has 1797 rows"),
        (lambda net: Guarded(net).calibrate(X, y_reference=Y), "of reference, which has 0 rows"),
        (lambda net: Guarded(net).calibrate(X, Y), "y holds the label 7, which is no known class: 0, 1, 2"),
        (lambda net: Guarded(net, classes=list("aabcdef")).calibrate(X), "classes holds a class twice"),
        (lambda net: Guarded(net).calibrate(pd.DataFrame(X).astype(object)), "X must hold numbers, which Net takes"),
        (lambda net: Guarded(net).calibrate(X).predict(X[:0]), "X has 0 samples; Net needs at least 1"),
        (lambda net: Guarded(net).calibrate(X[:, :5]), "X must be rows that Net takes; it says"),
        (lambda net: Guarded(Unused(), features="spare", novelty_score="k_nearest").calibrate(X, reference=X),
         "features names a layer that Unused does not use"),
        (lambda net: Guarded().calibrate(Outputs(logits=np.full((40, 3), np.nan))),
         "row 0 of X has NaN or infinite logits"),
        (lambda net: Guarded(novelty_score="k_nearest").calibrate(Outputs(X, X), reference=Outputs(X + np.inf, X)),
         r"row 0 of the known rows \(reference\) has NaN or infinite features"),
        (lambda net: Guarded(novelty_score="k_nearest").calibrate(Outputs(X, X), reference=Outputs(X, X)).predict(
            Outputs(X[:, :5], X)), "must be as wide as those that KNearest was fitted with"),
        (lambda net: Guarded(novelty_score="max_logit").calibrate(Outputs(logits=X[:, :7])).predict(
            Outputs(logits=X[:, :6])), "logits have 6 columns, but there are 7 classes"),
        (lambda net: Guarded(nn.Linear(64, 1)).calibrate(X), "logits have 1 columns; give one per class"),
        (lambda net: Guarded().calibrate(X), "X must be Outputs"),
        (lambda net: Guarded().calibrate(Outputs(features=X)), "X has no logits"),
        (lambda net: Guarded().calibrate(Outputs(logits=X[:, 0])), "logits must have one row per row"),
        (lambda net: Outputs(X, X[1:]), "features has 1797 rows and logits has 1796"),
        (lambda net: Guarded(net).calibrate(X[:0]), "X has 0 samples"),
        (lambda net: Calibrated(constant).calibrate(X), "all 1797 calibration rows have the same score, 1"),
        (lambda net: Guarded(RandomForestClassifier(5), features="body", novelty_score="k_nearest").fit(X, Y),
         "features names a layer, 'body', but RandomForestClassifier has no layers"),
    ],
)  # fmt: skip
def test_what_cannot_be_guarded_is_named(make: Any, message: str, net: Net) -> None:
    with pytest.raises(ValueError, match=message):
        make(net)


def test_a_file_holds_all_but_the_model_and_refuses_another(pipeline: Any, net: Net, tmp_path: Path) -> None:
    path = tmp_path / "guarded.safetensors"
    model = Guarded(net, novelty_score="auto", features="body")
    model.calibrate(X[FRESH], reference=X[TRAIN], y_reference=Y[TRAIN]).save(path)
    loaded = offmap.load(path, model=net)
    assert loaded.assess(X).to_frame().equals(model.assess(X).to_frame())
    other = Net()
    with pytest.raises(ModelFileError, match="Net that was saved: it scores the rows stored in the file differently"):
        offmap.load(path, model=other)
    with pytest.raises(ModelFileError, match=r"that was saved: it is a sklearn\.pipeline\.Pipeline"):
        offmap.load(path, model=pipeline)
    with pytest.raises(ModelFileError, match=r"saved without its .*Net; give it as model="):
        offmap.load(path)


def test_files_of_detectors_frames_functions_and_arrays(tmp_path: Path, pipeline: Any) -> None:
    path = tmp_path / "model.safetensors"
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    forest = IsolationForest(n_estimators=20, random_state=0).fit(frame[:900])
    Calibrated(forest).calibrate(frame[900:]).save(path)
    assert (
        offmap.load(path, model=forest).predict(frame) == Calibrated(forest).calibrate(frame[900:]).predict(frame)
    ).all()
    with pytest.raises(ModelFileError, match="differently"):
        offmap.load(path, model=IsolationForest(n_estimators=20, random_state=1).fit(frame[:900]))
    outputs = Outputs(X, pipeline.decision_function(X))
    Guarded(novelty_score="k_nearest").calibrate(outputs.take(FRESH), reference=outputs.take(TRAIN)).save(path)
    assert len(offmap.load(path).assess(outputs)) == len(X)
    with pytest.raises(TypeError, match="novelty_score is a function"):
        Guarded(pipeline, novelty_score=lambda model, rows: rows.sum(1)).calibrate(X).save(path)


def test_a_model_of_a_frame_that_is_not_of_pandas_is_saved(tmp_path: Path) -> None:
    table = pa.table({f"pixel {place}": X[TRAIN][:, place] for place in range(20, 30)})
    model = Calibrated(IsolationForest(random_state=0), random_state=0).fit(table)
    model.save(tmp_path / "model.safetensors")
    loaded = offmap.load(tmp_path / "model.safetensors", model=model.estimator_)
    assert (loaded.novelty(table) == model.novelty(table)).all()


def test_the_seed_is_that_of_the_classifier_as_well() -> None:
    def p_values(seed: int) -> bytes:
        return Guarded(RandomForestClassifier(5), random_state=seed).fit(X[TRAIN], Y[TRAIN]).p_value(X[FRESH]).tobytes()

    assert p_values(0) == p_values(0) != p_values(1)


def test_two_classes_without_probabilities_keep_their_names() -> None:
    two = TRAIN[Y[TRAIN] < 2]
    classifier = LinearSVC().fit(X[two[::2]], Y[two[::2]])
    model = Guarded(classifier).calibrate(X[two[1::2]])
    assert (model.predict_closed(X[two]) == classifier.predict(X[two])).all()


def test_the_classes_of_calibration_rows_name_the_logits_of_a_module(net: Net) -> None:
    names = np.array([f"digit {label}" for label in Y])
    for y in (names[FRESH], pd.Series(names[FRESH]), names[FRESH].tolist()):
        model = Guarded(net, by_class="actual", random_state=0).calibrate(X[FRESH], y)
        assert model.classes_.tolist() == [f"digit {label}" for label in range(7)]
        assert model.unknown_label_ == "unknown"
        assert np.mean(model.predict_closed(X[FRESH]) == names[FRESH]) > 0.9


def test_a_logit_of_minus_infinity_is_a_class_that_is_impossible() -> None:
    logits = np.random.default_rng(0).normal(size=(60, 3))
    logits[::2, 2] = -np.inf
    model = Guarded().calibrate(Outputs(logits=logits))
    assert (model.predict_proba(Outputs(logits=logits))[::2, 2] == 0).all()


def test_features_that_a_score_does_not_read_may_be_missing() -> None:
    logits = np.random.default_rng(0).normal(size=(60, 3))
    outputs = Outputs(np.full((60, 2), np.nan), logits)
    model = Guarded(novelty_score="max_logit").calibrate(outputs, reference=outputs)
    assert (model.novelty(outputs) == -logits.max(axis=1)).all()


@pytest.mark.parametrize("search", [False, True])
def test_rows_that_are_no_numbers_need_no_features(search: bool) -> None:
    pipeline = make_pipeline(TfidfVectorizer(analyzer="char"), LogisticRegression())
    classifier = GridSearchCV(pipeline, {}, cv=2) if search else make_pipeline(pipeline)
    texts = ["".join(chr(97 + int(place)) for place in np.flatnonzero(row)) for row in X[TRAIN]]
    for score in ("max_softmax", "auto") if search else ("max_softmax",):
        model = Guarded(classifier, novelty_score=score, random_state=0).fit(texts, Y[TRAIN])
        assert model.assess(texts).novel.mean() < 0.1


PAIRWISE = SVC(decision_function_shape="ovo")


@pytest.mark.parametrize(
    "classifier", [PAIRWISE, make_pipeline(StandardScaler(), PAIRWISE), GridSearchCV(PAIRWISE, {"C": [1.0]}, cv=2)]
)
def test_scores_of_pairs_of_classes_are_not_taken_for_scores_of_classes(classifier: Any) -> None:
    # Of three classes there are three pairs: as many columns as classes, in another sense.
    three = Y < 3
    rows, labels = X[three], Y[three]
    with pytest.raises(ValueError, match=r'one column per class; .* decision_function_shape="ovr"'):
        Guarded(classifier, random_state=0).fit(rows, labels)
    mended = classifier.fit(rows[::2], labels[::2])
    svm = mended[-1] if hasattr(mended, "steps") else getattr(mended, "best_estimator_", mended)
    svm.set_params(decision_function_shape="ovr")
    guarded = Guarded(classifier).calibrate(rows[1::2])
    assert (guarded.assess(rows).closest == classifier.predict(rows)).all()
    svm.set_params(decision_function_shape="ovo")


@pytest.mark.parametrize("threshold", [0.5, 0.001])
def test_a_decision_threshold_that_the_names_do_not_follow_is_told(threshold: float) -> None:
    # Labels are those of the most likely class; a user who had tuned the threshold got others without a word.
    small = KNOWN & (Y < 4)
    classifier = FixedThresholdClassifier(LogisticRegression(max_iter=500), threshold=threshold)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        guarded = Guarded(classifier, random_state=0).fit(X[small], Y[small] % 2)
    rows = X[small]
    differs = bool((guarded.predict_closed(rows) != guarded.classifier_.predict(rows)).any())
    assert differs == (threshold != 0.5)
    assert [("predicts another class" in str(each.message), each.category) for each in told] == (
        [(True, CalibrationWarning)] if differs else []
    )
