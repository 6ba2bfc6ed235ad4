"""The Mahalanobis distance as a detector."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import LedoitWolf

from offmap.density import MahalanobisDetector
from offmap.metrics import auroc


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 99), rows=st.integers(30, 80), features=st.integers(1, 40))
def test_the_novelty_is_the_quadratic_form(seed: int, rows: int, features: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) @ rng.normal(size=(features, features)) + 5
    detector = MahalanobisDetector(calibration=0.5, alpha=0.5, random_state=0).fit(X)
    mean, precision = detector.mean_.numpy(), detector.precision_.numpy()
    Z = (X - detector.scaler_.mean.numpy()) / detector.scaler_.scale.numpy()
    naive = [sum((z - mean)[i] * precision[i, j] * (z - mean)[j] for i in range(features) for j in range(features))
             for z in Z[:5]]  # fmt: skip
    np.testing.assert_allclose(detector.novelty(X[:5]), naive, rtol=1e-3)


def test_the_covariance_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(400, 5)) @ rng.normal(size=(5, 5))).astype(np.float32)
    X = (X - X.mean(0)) / X.std(0)
    detector = MahalanobisDetector(calibration=0.01, alpha=0.5, random_state=0).fit(X)
    np.testing.assert_allclose(detector.precision_.numpy(), LedoitWolf().fit(X).precision_, rtol=0.1, atol=0.05)


def test_rows_that_break_a_correlation_are_found_though_each_feature_is_normal() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 1))
    X = np.hstack([x, x + 0.1 * rng.normal(size=x.shape)])
    novel = np.hstack([x[:200], rng.permutation(x[:200])])
    detector = MahalanobisDetector(random_state=0).fit(X[200:])
    assert auroc(detector.novelty(X[:200]), detector.novelty(novel)) > 0.9


def test_constant_and_repeated_features_are_harmless() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1))
    X = np.hstack([x, x, np.full_like(x, 7.0)])
    detector = MahalanobisDetector(random_state=0).fit(X)
    assert np.isfinite(detector.novelty(X)).all()
    assert detector.predict([[0.0, 0.0, 8.0], [0.0, 0.0, 7.0]]).tolist() == [-1, 1]
