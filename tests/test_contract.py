"""The contract, over every public estimator."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.random_projection import GaussianRandomProjection

import offmap
from offmap.calibration import CalibrationWarning
from offmap.collaborative import SeparateGaussianDetector
from offmap.density import NearestNeighborDetector
from offmap.openset import MSPClassifier
from offmap.parameters import hints
from tests.estimators import CLASSES, CLASSIFIERS, DETECTORS, brief, small

Array = NDArray[Any]


def blobs(n: int = 240, seed: int = 0) -> tuple[Array, Array]:
    """Three clusters in four dimensions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 4)) + 6 * np.eye(4)[y], y


@pytest.fixture(scope="module", params=CLASSES, ids=lambda cls: cls.__name__)
def fitted(request: pytest.FixtureRequest) -> Any:
    return small(request.param).fit(*blobs())


def test_same_seed_gives_the_same_bytes_and_leaves_global_random_state_alone(fitted: Any) -> None:
    X, y = blobs()
    numpy_before, torch_before = np.random.get_state(legacy=False)["state"]["key"].copy(), torch.get_rng_state()
    again = small(type(fitted)).fit(X, y)
    assert again.novelty(X).tobytes() == fitted.novelty(X).tobytes()
    assert (np.random.get_state(legacy=False)["state"]["key"] == numpy_before).all()
    assert torch.equal(torch.get_rng_state(), torch_before)


def test_another_seed_gives_another_split(fitted: Any) -> None:
    X, y = blobs()
    other = small(type(fitted), random_state=1).fit(X, y)
    assert not np.array_equal(other.calibration_novelty_, fitted.calibration_novelty_)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_row_scores_the_same_in_any_batch(fitted: Any, threads: int) -> None:
    X, _ = blobs(3000, seed=1)
    torch.set_num_threads(threads)
    try:
        whole = fitted.novelty(X)
        order = np.random.default_rng(0).permutation(len(X))
        assert fitted.novelty(X[order]).tobytes() == whole[order].tobytes()
        for rows in (slice(0, 1), slice(5, 22), slice(1000, 2029)):
            assert fitted.novelty(X[rows]).tobytes() == whole[rows].tobytes()
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_wide_row_scores_the_same_on_any_number_of_threads(cls: type) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=240)
    X = rng.normal(size=(240, 800)) + 4 * np.eye(800)[y]
    model = small(cls).fit(X, y)
    alone = model.novelty(X)
    torch.set_num_threads(2)
    try:
        assert model.novelty(X).tobytes() == alone.tobytes()
        assert model.novelty(np.tile(X, (3, 1)))[-3:].tobytes() == alone[-3:].tobytes()
        assert model.novelty(X[:1]).tobytes() == alone[:1].tobytes()
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("width", [5, 17])
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_row_scores_the_same_in_any_batch_where_rows_start_at_odd_places_in_memory(cls: type, width: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    X = rng.normal(size=(300, width)) + 4 * np.eye(width)[y]
    narrow = {"hidden": (7,)} if "hidden" in hints(cls) else {}
    fitted = brief(cls, **narrow).fit(X, y)
    whole, order = fitted.novelty(X), rng.permutation(len(X))
    assert fitted.novelty(X[order]).tobytes() == whole[order].tobytes()
    assert fitted.novelty(X[7:8]).tobytes() == whole[7:8].tobytes()


@pytest.mark.parametrize("cls", CLASSIFIERS, ids=lambda cls: cls.__name__)
def test_a_row_scores_the_same_at_every_place_for_any_number_of_classes(cls: type) -> None:
    rng = np.random.default_rng(0)
    for classes in (6, 7, 10, 11, 19):
        y = np.arange(20 * classes) % classes
        X = 3 * rng.normal(size=(classes, 5))[y] + rng.normal(size=(len(y), 5))
        fitted = brief(cls, **({"width": 50} if "width" in hints(cls) else {})).fit(X, y)
        assert len(np.unique(fitted.novelty(np.tile(X[:1] + 1, (300, 1))))) == 1, classes


def test_save_and_load_give_the_same_bytes(fitted: Any, tmp_path: Path) -> None:
    X, _ = blobs(seed=1)
    before = torch.get_rng_state()
    fitted.save(tmp_path / "model.safetensors")
    loaded = offmap.load(tmp_path / "model.safetensors")
    assert torch.equal(torch.get_rng_state(), before)
    assert loaded.get_params() == fitted.get_params()
    assert loaded.novelty(X).tobytes() == fitted.novelty(X).tobytes()
    assert loaded.p_value(X).tobytes() == fitted.p_value(X).tobytes()
    assert (loaded.predict(X) == fitted.predict(X)).all()
    assert loaded.history_ == fitted.history_


def test_far_rows_are_novel_and_have_small_p_values(fitted: Any) -> None:
    X, _ = blobs(seed=2)
    # Between the clusters as well as outside them: a softmax is sure of itself far out on a known side.
    far = np.full((1, 4), 2.0) if type(fitted) in CLASSIFIERS else np.full((1, 4), 60.0)
    assert fitted.novelty(far)[0] > np.median(fitted.novelty(X))
    assert fitted.p_value(far)[0] < np.median(fitted.p_value(X))


def test_p_value_at_most_alpha_means_flagged(fitted: Any) -> None:
    if getattr(fitted, "rule", "calibrated") == "own":
        pytest.skip("its own rule does not look at p-values")
    X, _ = blobs(500, seed=3)
    flagged = fitted.novelty(X) > fitted.threshold_
    assert ((fitted.p_value(X) <= fitted.alpha) == flagged).all()


def test_overflowing_rows_are_infinitely_novel_not_nan(fitted: Any) -> None:
    extreme = np.array([[1e300, -1e300, 1e300, 1e300]])
    assert not np.isnan(fitted.novelty(extreme)).any()
    if type(fitted) in CLASSIFIERS:
        assert fitted.predict_proba(extreme).sum() == pytest.approx(1)


@pytest.mark.parametrize("cls", CLASSES)
def test_a_fit_that_failed_leaves_no_model(cls: Any, tmp_path: Path) -> None:
    model = small(cls)
    with pytest.raises(ValueError, match="at least 2"):
        model.fit(*(part[:1] for part in blobs()))
    with pytest.raises(NotFittedError):
        model.novelty(blobs()[0])
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model.safetensors")


@pytest.mark.parametrize("cls", CLASSES)
def test_a_refit_that_failed_leaves_no_model(cls: Any) -> None:
    X, y = blobs()
    model = small(cls).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 0, np.nan, X), y)
    with pytest.raises(NotFittedError):
        model.novelty(X)


@pytest.mark.parametrize("cls", CLASSES)
def test_the_rate_that_is_promised_is_one_that_can_be_kept(cls: Any) -> None:
    X, y = blobs()
    rule = {"rule": "calibrated"} if cls in CLASSIFIERS else {}
    assert small(cls, **rule).fit(X, y).promised_rate == 0.05
    with pytest.warns(CalibrationWarning):
        assert small(cls, calibration=0.04, **rule).fit(X, y).promised_rate == pytest.approx(1 / 11)
    if getattr(cls, "own_threshold", None) is not None:
        assert small(cls, rule="own").fit(X, y).promised_rate is None


class Memory(TransformerMixin, BaseEstimator):
    """An encoder that overfits as far as can be: it knows the rows it was fitted on."""

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, X: Array, y: object = None) -> "Memory":
        self.known_ = {row.tobytes() for row in np.asarray(X)}
        return self

    def transform(self, X: Array) -> Array:
        known = np.array([row.tobytes() in self.known_ for row in np.asarray(X)])
        noise = np.random.default_rng(0).normal(size=(len(known), 3))
        return noise + np.where(known, 0, 50)[:, None]


# Rows that the encoder does not know lie outside all training rows, where ECOD scores them alike.
@pytest.mark.filterwarnings("ignore:many held-out rows share one novelty")
@pytest.mark.parametrize("cls", DETECTORS)
def test_an_encoder_does_not_learn_from_the_held_out_rows(cls: Any) -> None:
    """A new row looks like a held-out one to it, and so is flagged at the promised rate, not always."""
    X, _ = blobs(400)
    model = small(cls, encoder=Memory(), calibration=0.5).fit(X[:300])
    assert len(model.encoder_.known_) == 150
    assert model.encoder_.random_state is not None
    assert np.mean(model.predict(X[300:]) == -1) < 0.2


@pytest.mark.parametrize("cls", [MSPClassifier, NearestNeighborDetector, SeparateGaussianDetector])
def test_a_random_step_inside_an_encoder_follows_the_seed(cls: Any) -> None:
    X, y = blobs()
    asked = (X, y) if cls is SeparateGaussianDetector else (X,)
    encoder = make_pipeline(StandardScaler(), GaussianRandomProjection(2))
    models = [small(cls, encoder=encoder, random_state=seed).fit(X, y) for seed in (0, 0, 1)]
    first, again, other = (model.novelty(*asked).tobytes() for model in models)
    assert first == again
    assert first != other
    assert encoder.get_params()["gaussianrandomprojection__random_state"] is None


def test_sparse_rows_of_an_encoder_are_taken() -> None:
    texts, kinds = ["red apple", "green apple", "blue car", "black car"] * 30, ["fruit", "fruit", "car", "car"] * 30
    model = small(MSPClassifier, encoder=TfidfVectorizer(), epochs=50, calibration=0.3).fit(texts, kinds)
    assert model.predict_closed(["an apple", "a car"]).tolist() == ["fruit", "car"]


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_one_row_per_class_cannot_be_calibrated(cls: Any) -> None:
    X, _ = blobs(4)
    with pytest.raises(ValueError, match="more than one row"):
        small(cls, rule="calibrated").fit(X, [0, 1, 2, 3])


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 0.0}, "alpha must be a number between 0 and 1"),
        ({"alpha": "high"}, "alpha must be a number between 0 and 1"),
        ({"calibration": 1.5}, "calibration must be a number between 0 and 1"),
        ({"random_state": "seven"}, "random_state must be"),
    ],
)
def test_bad_parameters_are_named(cls: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(cls, **change).fit(*blobs())


@pytest.mark.parametrize("cls", CLASSES)
def test_bad_arrays_are_named(cls: Any) -> None:
    X, y = blobs()
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        small(cls).fit(broken, y)
    with pytest.raises(ValueError, match="Input X contains infinity"):
        small(cls).fit(np.where(np.isnan(broken), np.inf, X), y)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        small(cls).fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="at least 2"):
        small(cls).fit(X[:1], y[:1])
    model = small(cls).fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.novelty(X[:, :3])


@pytest.mark.parametrize("cls", CLASSES)
def test_images_of_one_shape_are_taken_and_others_refused(cls: Any) -> None:
    rng = np.random.default_rng(0)
    images, y = rng.integers(256, size=(250, 8, 8), dtype=np.uint8), np.arange(250) % 2
    model = small(cls).fit(images, y)
    as_floats = (images / np.float32(255)).astype(np.float32)
    np.testing.assert_allclose(model.novelty(images), model.novelty(as_floats), rtol=1e-5)
    with pytest.raises(ValueError, match=r"expected uint8 or floats in \[0, 1\]"):
        model.novelty(images.astype(float))
    with pytest.raises(ValueError, match="shape"):
        model.novelty(images[:, :4])


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_labels_are_checked(cls: Any) -> None:
    X, y = blobs()
    with pytest.raises(ValueError, match="one class only"):
        small(cls).fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        small(cls).fit(X, y[:-1])
    with pytest.raises(ValueError, match="unknown_label 2 is a class of y"):
        small(cls, unknown_label=2).fit(X, y)
    with pytest.raises(ValueError, match="must be a number"):
        small(cls, unknown_label="none").fit(X, y)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_string_labels_come_back_and_unknown_is_a_string(cls: Any) -> None:
    X, y = blobs()
    names = np.array(["ant", "bee", "cicada"])[y]
    model = small(cls, rule="calibrated").fit(X, names)
    answers = model.predict(X)
    assert set(answers) <= {"ant", "bee", "cicada", "unknown"}
    known = answers != "unknown"
    assert np.mean(known) > 0.7
    assert np.mean(answers[known] == names[known]) > 0.9
    assert (model.predict_closed(X)[known] == answers[known]).all()
    model.promise_.threshold_ = -np.inf
    assert (model.predict(X) == "unknown").all()


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_calibration_may_be_zero_only_with_the_own_rule(cls: Any) -> None:
    X, y = blobs()
    with pytest.raises(ValueError, match="needs calibration above 0"):
        small(cls, calibration=0.0, rule="calibrated").fit(X, y)
    if cls.own_threshold is None:
        return
    model = small(cls, calibration=0.0, rule="own").fit(X, y)
    assert model.threshold_ == cls.own_threshold
    with pytest.raises(ValueError, match="p_value needs held-out rows"):
        model.p_value(X)


@pytest.mark.parametrize("cls", DETECTORS)
def test_too_few_calibration_rows_warn(cls: Any) -> None:
    with pytest.warns(CalibrationWarning, match=r"4 calibration rows cannot promise a false-alarm rate of 0\.05"):
        small(cls).fit(blobs(40)[0])
