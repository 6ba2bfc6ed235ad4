"""Contributions: against naive loops and closed forms."""

from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from offmap import Calibrated
from offmap.density import MahalanobisDetector, NearestNeighborDetector
from offmap.explain import explain
from offmap.explain.composition import clipped_distances

Rows = NDArray[np.float64]


def additive(X: Any) -> Rows:
    """A novelty that is a sum over features, each of another form."""
    return np.asarray(np.abs(X[:, 0]) + X[:, 1] ** 2 + np.exp(X[:, 2] / 4) + 0 * X[:, 3])


@settings(max_examples=15)
@given(seed=st.integers(0, 99), neighbors=st.integers(1, 5))
def test_occlusion_of_a_sum_is_the_difference_of_each_term(seed: int, neighbors: int) -> None:
    rng = np.random.default_rng(seed)
    normal, X = rng.normal(size=(60, 4)), 3 * rng.normal(size=(5, 4))
    model = Calibrated(additive).calibrate(normal)
    for row, found in enumerate(explain(model, X, reference=normal, n_neighbors=neighbors)):
        for j in range(4):
            alone = np.zeros((2, 4))
            differences = []
            for neighbor in found.neighbors:
                alone[:, j] = X[row, j], normal[neighbor, j]
                differences.append(np.subtract(*additive(alone)))
            assert found.contributions[j] == pytest.approx(np.mean(differences), abs=1e-9)


def test_occlusion_of_a_product_exchanges_one_value_of_the_nearest_rows() -> None:
    rng = np.random.default_rng(0)
    normal, X = rng.normal(size=(40, 3)), 4 * rng.normal(size=(3, 3))

    def product(rows: Any) -> Rows:
        return np.asarray(np.abs(rows + 1).prod(axis=1))

    model = Calibrated(product).calibrate(normal)
    for row, found in enumerate(explain(model, X, reference=normal, n_neighbors=2)):
        for j in range(3):
            rises = []
            for neighbor in found.neighbors:
                mixed = normal[neighbor].copy()
                mixed[j] = X[row, j]
                rises.append(product(mixed[None])[0] - product(normal[[neighbor]])[0])
            assert found.contributions[j] == pytest.approx(np.mean(rises))


@settings(max_examples=10)
@given(seed=st.integers(0, 99), neighbors=st.integers(1, 4))
def test_shares_of_the_nearest_neighbour_distance(seed: int, neighbors: int) -> None:
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(80, 3)) * [1, 10, 100], 2 * rng.normal(size=(6, 3)) * [1, 10, 100]
    detector = NearestNeighborDetector(n_neighbors=neighbors, calibration=0.3, random_state=seed).fit(X)
    scale, mean = detector.scaler_.scale.numpy(), detector.scaler_.mean.numpy()
    found = detector.contributions(new)
    np.testing.assert_allclose(found.sum(axis=1), detector.novelty(new), rtol=1e-4)
    for row, z in zip(found, (new - mean) / scale, strict=True):
        gaps = z - detector.rows_
        nearest = np.argsort((gaps**2).sum(axis=1))[:neighbors]
        shares = np.mean([gaps[n] ** 2 / np.sqrt((gaps[n] ** 2).sum()) for n in nearest], axis=0)
        np.testing.assert_allclose(row / row.sum(), shares / shares.sum(), rtol=1e-3, atol=1e-6)


def test_the_rows_that_trained_a_nearest_neighbour_detector_are_explained_by_the_others() -> None:
    X = np.random.default_rng(0).normal(size=(80, 3))
    detector = NearestNeighborDetector(calibration=0.3, random_state=0).fit(X)
    np.testing.assert_allclose(detector.contributions(X).sum(axis=1), detector.novelty(X), rtol=1e-4)


@pytest.mark.parametrize("calibration", [0.1, "cv"])
def test_rows_that_trained_the_model_are_compared_with_changes_of_them_as_new_rows(calibration: Any) -> None:
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(400, 20)), 1.8 * rng.normal(size=(30, 20))
    detector = NearestNeighborDetector(calibration=calibration, random_state=0).fit(X)
    found = [each for each in explain(detector, new) if each.novel]
    assert len(found) > 20
    for each in found:
        strongest = each.reasons(1)[0]
        value, usual = abs(strongest.value), np.abs(strongest.usual).max()
        assert value > 1
        assert value > usual
    # A change that is too small to see adds nothing.
    row = np.asarray(found[0].neighbor_rows[0])[None]
    [same] = explain(detector, row + 1e-4, n_neighbors=1)
    np.testing.assert_allclose(same.contributions, 0.0, atol=1e-2)


def test_shares_of_the_mahalanobis_distance_are_shapley_values() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 3))
    detector = MahalanobisDetector(random_state=0).fit(X)
    row = np.array([2.0, -1.0, 3.0])
    # A feature that is left out is replaced by its mean.
    mean = detector.scaler_.mean.numpy() + detector.scaler_.scale.numpy() * detector.mean_.numpy()

    def value(kept: tuple[int, ...]) -> float:
        return float(detector.novelty(np.where(np.isin(range(3), kept), row, mean)[None])[0])

    for j, share in enumerate(detector.contributions(row[None])[0]):
        others = [k for k in range(3) if k != j]
        weights = {size: factorial(size) * factorial(2 - size) / factorial(3) for size in range(3)}
        shapley = sum(
            weights[size] * (value((*some, j)) - value(some))
            for size in range(3)
            for some in combinations(others, size)
        )
        assert share == pytest.approx(shapley, rel=1e-3)


@settings(max_examples=20)
@given(seed=st.integers(0, 99))
def test_a_feature_counts_for_at_most_one_and_a_half_deviations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    reference, X = rng.normal(size=(20, 4)) * [1, 5, 25, 0], 9 * rng.normal(size=(3, 4))
    found, spread = clipped_distances(X, reference), reference.std(axis=0)
    for row, x in enumerate(X):
        for column, r in enumerate(reference):
            gaps = [abs(a - b) / s if s else 1e9 for a, b, s in zip(x, r, spread, strict=True)]
            naive = sum(min(gap, 1.5) ** 2 + 0.001 * np.log1p(gap) for gap in gaps)
            assert found[row, column] == pytest.approx(np.sqrt(naive))


def test_a_missing_value_is_far_from_a_known_one_and_equal_to_a_missing_one() -> None:
    reference = np.array([[np.nan, 1.0], [0.0, 1.0], [1.0, 1.0]])
    near, far, _ = clipped_distances(np.array([[np.nan, 1.0]]), reference)[0]
    assert near == 0
    assert far > 1
