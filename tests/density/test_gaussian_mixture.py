"""A mixture of Gaussians as a detector."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from offmap.density import GaussianMixtureDetector, MahalanobisDetector
from offmap.metrics import auroc


def clusters(n: int, seed: int = 0) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) @ np.diag([1.0, 0.5, 2.0]) + rng.choice([-6.0, 6.0], size=(n, 1))


def test_the_novelty_is_minus_the_log_density() -> None:
    X = clusters(400)
    detector = GaussianMixtureDetector(n_components=3, random_state=0).fit(X)
    Z = (X[:20].astype(np.float32) - detector.scaler_.mean.numpy()) / detector.scaler_.scale.numpy()
    density = sum(
        weight * multivariate_normal(mean, np.linalg.inv(factor @ factor.T)).pdf(Z)
        for weight, mean, factor in zip(
            detector.weights_.numpy(), detector.means_.numpy(), detector.factors_.numpy(), strict=True
        )
    )
    np.testing.assert_allclose(detector.novelty(X[:20]), -np.log(density), rtol=1e-4)


def test_rows_between_clusters_are_found_which_one_gaussian_cannot() -> None:
    X, between = clusters(600), np.random.default_rng(1).normal(size=(100, 3))
    fresh = clusters(200, seed=2)
    mixture, single = (
        detector.fit(X) for detector in (GaussianMixtureDetector(random_state=0), MahalanobisDetector(random_state=0))
    )
    assert auroc(mixture.novelty(fresh), mixture.novelty(between)) > 0.98
    assert auroc(single.novelty(fresh), single.novelty(between)) < 0.7


@pytest.mark.filterwarnings("ignore:.*copies of other rows")
def test_rows_that_repeat_are_harmless() -> None:
    X = np.repeat([[0.0, 1.0], [2.0, 3.0]], 60, axis=0)
    assert np.isfinite(GaussianMixtureDetector(alpha=0.1, random_state=0).fit(X).novelty(X)).all()
