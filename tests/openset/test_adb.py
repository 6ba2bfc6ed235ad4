"""ADB: a ball around each class."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from offmap.openset.adb import ADBClassifier, boundary_loss, class_quantiles, inverse_softplus
from tests.openset.rivals import (
    KNOWN,
    TEST_X,
    TRAIN_X,
    TRAIN_Y,
    Array,
    rejected,
    require_same_bytes,
    require_skill,
    require_small_data_works,
    tensor,
)


@pytest.fixture(scope="module")
def fitted() -> ADBClassifier:
    return ADBClassifier(rule="own", calibration=0.0, random_state=0).fit(TRAIN_X, TRAIN_Y)


def features_of(model: ADBClassifier, rows: Array) -> torch.Tensor:
    with torch.no_grad():
        return model.network_.features(tensor(rows))


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.floats(0, 9)), min_size=1, max_size=20),
    st.tuples(*[st.floats(-3, 9)] * 3),
)
def test_loss_and_gradient_are_those_of_the_paper(rows: list[tuple[int, float]], start: tuple[float, ...]) -> None:
    theta = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    codes, distance = torch.tensor([k for k, _ in rows]), torch.tensor([d for _, d in rows], dtype=torch.float64)
    loss = boundary_loss(distance, torch.nn.functional.softplus(theta)[codes])
    (gradient,) = torch.autograd.grad(loss, theta)
    expected, slopes = 0.0, np.zeros(3)
    for k, d in rows:
        radius = np.log1p(np.exp(start[k]))
        if d == radius:
            return
        outside = d > radius
        expected += (d - radius if outside else radius - d) / len(rows)
        slopes[k] += (-1 if outside else 1) / (1 + np.exp(-start[k])) / len(rows)
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-6, abs=1e-9)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("value", [1e-4, 0.3, 5.0, 300.0])
def test_inverse_softplus(value: float) -> None:
    found = inverse_softplus(torch.tensor([value], dtype=torch.float64))
    assert float(torch.nn.functional.softplus(found)) == pytest.approx(value)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0, 9)), max_size=20), st.floats(0.01, 0.99))
def test_quantiles_are_those_of_numpy_class_by_class(rows: list[tuple[int, float]], quantile: float) -> None:
    rows = [*rows, (0, 1.0), (1, 4.0), (2, 2.0)]
    codes, values = np.array([k for k, _ in rows]), np.array([d for _, d in rows])
    expected = [np.quantile(values[codes == k], quantile, method="inverted_cdf") for k in range(3)]
    np.testing.assert_array_equal(class_quantiles(values, codes, quantile), expected)


def test_learned_radius_is_the_median_with_dropout_and_well_above_the_median_without(fitted: ADBClassifier) -> None:
    features, centroids = features_of(fitted, TRAIN_X), torch.from_numpy(fitted.centroids_)
    torch.manual_seed(0)
    drawn = torch.stack([torch.nn.functional.dropout(features, 0.1) for _ in range(20)])
    with_dropout = (drawn - centroids[TRAIN_Y]).norm(dim=2).numpy()
    without = (features - centroids[TRAIN_Y]).norm(dim=1).numpy()
    for k in range(7):
        assert fitted.radii_[k] == pytest.approx(np.median(with_dropout[:, k == TRAIN_Y]), rel=0.06)
        assert fitted.radii_[k] > 1.1 * np.median(without[k == TRAIN_Y])


def test_without_dropout_half_of_the_known_rows_are_rejected_and_quantile_mends_it(fitted: ADBClassifier) -> None:
    trapped = ADBClassifier(rule="own", dropout=0.0, random_state=0).fit(TRAIN_X, TRAIN_Y)
    mended = ADBClassifier(rule="own", dropout=0.0, quantile=0.95, calibration=0.0, random_state=0).fit(
        TRAIN_X, TRAIN_Y
    )
    assert rejected(trapped, TRAIN_X) > 0.4
    assert rejected(fitted, TRAIN_X) < 0.25
    # The row on the sphere of each of the seven classes is outside.
    assert rejected(mended, TRAIN_X) == pytest.approx(0.05, abs=0.03)
    assert rejected(mended, TEST_X[~KNOWN]) > 2 * rejected(mended, TEST_X[KNOWN])


def test_novelty_is_the_distance_to_the_ball_of_the_nearest_centre(fitted: ADBClassifier) -> None:
    distance = cdist(features_of(fitted, TEST_X).double(), fitted.centroids_)
    at = distance.argmin(axis=1)
    nearest = distance.min(axis=1)
    np.testing.assert_allclose(fitted.novelty(TEST_X), nearest - fitted.radii_[at], atol=1e-4)
    assert (fitted.predict_closed(TEST_X) == at).all()
    proba = np.exp(-distance) / np.exp(-distance).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(TEST_X), proba, atol=1e-5)


def test_centres_are_the_means_of_the_classes(fitted: ADBClassifier) -> None:
    features = features_of(fitted, TRAIN_X).numpy()
    expected = [features[k == TRAIN_Y].mean(axis=0) for k in range(7)]
    np.testing.assert_allclose(fitted.centroids_, expected, atol=1e-5)


def test_a_row_on_the_sphere_is_outside() -> None:
    model = ADBClassifier(rule="own", epochs=2, random_state=0).fit(TRAIN_X, TRAIN_Y)
    row = TEST_X[:1]
    model.radii_ = np.zeros(7)
    distance = np.float32(model.novelty(row)[0])
    model.radii_ = np.full(7, distance, dtype=np.float64)
    assert model.predict(row) == -1
    model.radii_ = np.nextafter(model.radii_, np.inf)
    assert model.predict(row) != -1


def test_finds_unknown_digits(fitted: ADBClassifier) -> None:
    require_skill(fitted, closed=0.9, separation=0.72, found=0.5)
    assert fitted.history_.keys() == {"classification", "boundary"}


def test_scores_do_not_depend_on_company_or_file(fitted: ADBClassifier, tmp_path: Path) -> None:
    require_same_bytes(fitted, tmp_path)


@pytest.mark.filterwarnings("ignore:.*copies of other rows")
def test_small_data_work() -> None:
    require_small_data_works(ADBClassifier)
    require_small_data_works(ADBClassifier, quantile=0.9)
