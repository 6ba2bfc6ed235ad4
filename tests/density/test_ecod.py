"""Empirical tail probabilities as a detector."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import skew

from offmap.density import ECODDetector
from offmap.metrics import auroc


@pytest.mark.filterwarnings("ignore:.*copies of other rows")
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 99), ties=st.booleans())
def test_the_novelty_is_the_formula(seed: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.gamma(2, size=(60, 3)) * [1, -1, 1]
    X = X.round() if ties else X.astype(np.float32).astype(float)
    detector = ECODDetector(alpha=0.5, random_state=0).fit(X)
    known = detector.values_.numpy().T
    for row, found in zip(X[:8], detector.novelty(X[:8]), strict=True):
        left, right, skewed = 0.0, 0.0, 0.0
        for value, values in zip(row, known.T, strict=True):
            low = -math.log((1 + sum(v <= value for v in values)) / (len(values) + 1))
            high = -math.log((1 + sum(v >= value for v in values)) / (len(values) + 1))
            left, right = left + low, right + high
            skewed += low if skew(values) < 0 else high
        assert abs(found - max(left, right, skewed)) < 1e-4


def test_rows_in_the_tails_are_found() -> None:
    rng = np.random.default_rng(0)
    X, novel = rng.normal(size=(500, 5)), rng.normal(size=(100, 5)) + 3 * rng.choice([-1, 1], size=(100, 1))
    detector = ECODDetector(random_state=0).fit(X[:400])
    assert auroc(detector.novelty(X[400:]), detector.novelty(novel)) > 0.97
