"""What the nearest-neighbour detector measures, and what it detects."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

import offmap
from offmap.density import NearestNeighborDetector
from offmap.metrics import auroc

ROWS = np.random.default_rng(0).normal([5.0, -200.0, 0.0], [1.0, 30.0, 1e-3], size=(400, 3))


@pytest.mark.parametrize("k", [1, 4])
def test_novelty_is_the_mean_distance_in_standardised_features(k: int) -> None:
    detector = NearestNeighborDetector(n_neighbors=k, random_state=0).fit(ROWS[:300])
    assert len(detector.rows_) == 270
    mean, scale = detector.scaler_.mean.numpy(), detector.scaler_.scale.numpy()
    scaled = StandardScaler().fit(mean + scale * detector.rows_)
    search = NearestNeighbors(n_neighbors=k).fit(detector.rows_)
    expected = search.kneighbors(scaled.transform(ROWS[300:]))[0].mean(1) / search.kneighbors()[0].mean()
    np.testing.assert_allclose(detector.novelty(ROWS[300:]), expected, rtol=1e-3)


def test_features_count_alike_whatever_their_unit() -> None:
    detector = NearestNeighborDetector(random_state=0).fit(ROWS)
    shifted = ROWS.mean(0) + 8 * np.diag(ROWS.std(0))
    assert (detector.predict(shifted) == -1).all()


def test_pixels_are_not_standardised() -> None:
    digits = load_digits()
    detector = NearestNeighborDetector(random_state=0).fit(digits.images / 16)
    assert detector.scaler_.mean.abs().max() == 0
    assert detector.rows_.max() == 1
    # The corner is always black: standardised, one grey value there would count without bound.
    speck = digits.images[:1].copy() / 16
    speck[0, 0, 0] = 0.05
    assert detector.novelty(speck)[0] < detector.threshold_


def test_it_sees_gaps_between_clusters_and_digits_that_were_not_in_training() -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(-5, 1, size=(300, 2)), rng.normal(5, 1, size=(300, 2))])
    assert NearestNeighborDetector(random_state=0).fit(rows).predict([[0.0, 0.0]]).tolist() == [-1]
    data = load_digits()
    images, known = data.images / 16, data.target < 7
    detector = NearestNeighborDetector(random_state=0).fit(images[known][:900])
    assert auroc(detector.novelty(images[known][900:]), detector.novelty(images[~known])) > 0.94


def test_more_neighbours_overlook_a_single_outlier_among_the_training_rows() -> None:
    rows = np.concatenate([ROWS, ROWS.mean(0)[None] + 9 * ROWS.std(0)])
    near_outlier = rows[-1:] * 1.001
    novelty = {}
    for k in (1, 5):
        # The seed leaves the outlier in the training part.
        detector = NearestNeighborDetector(n_neighbors=k, random_state=1).fit(rows)
        assert len(detector.rows_) == 361
        novelty[k] = detector.novelty(near_outlier)[0] / detector.threshold_
    assert novelty[1] < 1 < novelty[5]


def test_it_is_saved_with_its_rows(tmp_path: Path) -> None:
    detector = NearestNeighborDetector(random_state=0).fit(ROWS)
    detector.save(tmp_path / "model")
    loaded = offmap.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.rows_, detector.rows_)
    assert loaded.novelty(ROWS).tobytes() == detector.novelty(ROWS).tobytes()
    # A refit on other rows forgets the first ones.
    assert len(loaded.fit(ROWS[:200]).rows_) == 180


@pytest.mark.parametrize("calibration", [0.3, "cv"])
def test_a_new_row_has_an_equal_training_row_as_its_neighbour(calibration: Any) -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    detector = NearestNeighborDetector(calibration=calibration, n_neighbors=1, random_state=0).fit(X)
    of_new, of_trained = detector.novelty_of_new(X), detector.novelty(X)
    assert (of_new <= of_trained).all()
    assert np.mean(of_new < of_trained) > 0.6
    other = np.random.default_rng(1).normal(size=(50, 3))
    assert (detector.novelty_of_new(other) == detector.novelty(other)).all()
