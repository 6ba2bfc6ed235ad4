"""OpenMax: logits recalibrated by Weibull distributions of distances."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from scipy.stats import weibull_min

from offmap.openset.openmax import (
    OpenMaxClassifier,
    correctly_classified,
    distances,
    fit_weibulls,
    revise,
    weibull_cdf,
)
from tests.openset.rivals import (
    TEST_X,
    TRAIN_X,
    TRAIN_Y,
    Array,
    require_same_bytes,
    require_skill,
    require_small_data_works,
    tensor,
)


@pytest.fixture(scope="module")
def fitted() -> OpenMaxClassifier:
    return OpenMaxClassifier(rule="own", random_state=0).fit(TRAIN_X, TRAIN_Y)


def logits_of(model: OpenMaxClassifier, rows: Array) -> Array:
    with torch.no_grad():
        return model.network_(tensor(rows)).double().numpy()


def naive_revision(logits: Array, far: Array, top: int) -> list[float]:
    """One row, by the words of algorithm 2."""
    top = min(top, len(logits))
    kept, taken = list(logits), 0.0
    for i, k in enumerate(sorted(range(len(logits)), key=lambda k: -logits[k])[:top], start=1):
        kept[k] = logits[k] * (1 - (top + 1 - i) / top * far[k])
        taken += logits[k] - kept[k]
    return [*kept, taken]


@settings(deadline=None)
@given(
    arrays(np.float64, (4, 5), elements=st.floats(-20, 20), unique=True),
    arrays(np.float64, (4, 5), elements=st.floats(0, 1)),
    st.integers(1, 8),
)
def test_revision_is_the_algorithm_of_the_paper(logits: Array, far: Array, top: int) -> None:
    found = revise(torch.from_numpy(logits), torch.from_numpy(far), top).numpy()
    expected = [naive_revision(*row, top) for row in zip(logits, far, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@settings(deadline=None)
@given(st.floats(0, 50), st.floats(0.3, 30), st.floats(0.1, 20))
def test_weibull_cdf_is_that_of_scipy(distance: float, shape: float, scale: float) -> None:
    values = (torch.tensor(value, dtype=torch.float64) for value in (distance, shape, scale))
    assert float(weibull_cdf(*values)) == pytest.approx(weibull_min.cdf(distance, shape, scale=scale), abs=1e-9)


@pytest.mark.parametrize(("shape", "scale"), [(0.7, 2.0), (3.0, 0.05), (40.0, 7.0)])
def test_fit_finds_the_parameters_that_distances_were_drawn_with(shape: float, scale: float) -> None:
    drawn = weibull_min.rvs(shape, scale=scale, size=5000, random_state=0)
    (found,) = fit_weibulls(drawn, np.zeros(len(drawn), dtype=np.int64), classes=1, tail_size=5000)
    np.testing.assert_allclose(found, (shape, scale), rtol=0.05)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(0.1, 10), min_size=6, max_size=12, unique=True), st.integers(4, 8))
def test_fit_is_at_the_maximum_of_the_likelihood_of_the_tail(own: list[float], tail: int) -> None:
    (found,) = fit_weibulls(np.array(own), np.zeros(len(own), dtype=np.int64), classes=1, tail_size=tail)
    largest = np.sort(own)[-tail:]

    def likelihood(shape: float, scale: float) -> float:
        return float(np.sum(weibull_min.logpdf(largest, shape, scale=scale)))

    for factors in ((1.02, 1), (0.98, 1), (1, 1.02), (1, 0.98)):
        assert likelihood(*found * factors) < likelihood(*found)


def test_each_class_has_its_own_tail_and_a_tiny_one_that_of_all() -> None:
    rng = np.random.default_rng(0)
    own, codes = rng.uniform(1, 2, size=62), np.repeat([0, 1, 2], [30, 30, 2])
    own[30:60] *= 10
    found = fit_weibulls(own, codes, classes=3, tail_size=20)
    assert found[1, 1] / found[0, 1] == pytest.approx(10, rel=0.3)
    np.testing.assert_array_equal(found[2], found[1])


def test_equal_distances_make_a_step() -> None:
    ((shape, scale),) = fit_weibulls(np.full(9, 4.0), np.zeros(9, dtype=np.int64), classes=1, tail_size=20)
    inside, outside = weibull_cdf(torch.tensor([3.9, 4.1]), torch.tensor(shape), torch.tensor(scale))
    assert inside < 0.01
    assert outside > 0.99


@pytest.mark.parametrize("kind", ["euclidean", "cosine"])
def test_distances_are_those_of_scipy(kind: Literal["euclidean", "cosine"]) -> None:
    rng = np.random.default_rng(0)
    rows, means = rng.normal(size=(50, 6)), rng.normal(size=(6, 6))
    found = distances(torch.from_numpy(rows), torch.from_numpy(means), kind)
    np.testing.assert_allclose(found, cdist(rows, means, kind), atol=1e-12)


def test_correctly_classified_rows_count_and_all_of_a_class_without_any() -> None:
    logits = torch.tensor([[2.0, 1.0], [1.0, 2.0], [3.0, 0.0], [4.0, 0.0]])
    assert correctly_classified(logits, torch.tensor([0, 0, 1, 1])).tolist() == [True, False, True, True]


def test_means_and_tails_are_of_correctly_classified_training_rows() -> None:
    model = OpenMaxClassifier(rule="own", calibration=0.0, epochs=2, random_state=0).fit(TRAIN_X, TRAIN_Y)
    logits = logits_of(model, TRAIN_X)
    right = logits.argmax(axis=1) == TRAIN_Y
    assert 0.5 < right.mean() < 1
    for k in range(7):
        rows = logits[right & (k == TRAIN_Y)]
        np.testing.assert_allclose(model.mean_logits_[k], rows.mean(axis=0), atol=1e-5)
        tail = np.sort(np.linalg.norm(rows - rows.mean(axis=0), axis=1))[-20:]
        shape, _, scale = weibull_min.fit(tail, floc=0)
        np.testing.assert_allclose(model.weibulls_[k], (shape, scale), rtol=0.01)


def test_rejects_just_where_the_open_class_wins_or_none_reaches_one_half(fitted: OpenMaxClassifier) -> None:
    logits = logits_of(fitted, TEST_X)
    shape, scale = fitted.weibulls_.T
    far = np.asarray(weibull_min.cdf(cdist(logits, fitted.mean_logits_), shape, scale=scale))
    scores = np.array([naive_revision(*row, 10) for row in zip(logits, far, strict=True)])
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    unknown = (p.argmax(axis=1) == 7) | (p.max(axis=1) < 0.5)
    clear = np.abs(p - 0.5).min(axis=1) > 1e-3
    assert (p.argmax(axis=1) == 7).any()
    assert 0.1 < unknown.mean() < 0.9
    assert ((fitted.predict(TEST_X) == -1) == unknown)[clear].all()
    np.testing.assert_allclose(fitted.novelty(TEST_X), 1 - p[:, :7].max(axis=1), atol=1e-3)
    known = p[:, :7] / p[:, :7].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(TEST_X), known, atol=1e-3)


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_finds_unknown_digits(distance: Literal["euclidean", "cosine"]) -> None:
    model = OpenMaxClassifier(rule="own", distance=distance, random_state=0).fit(TRAIN_X, TRAIN_Y)
    require_skill(model, closed=0.86, separation=0.84, found=0.6)


def test_scores_do_not_depend_on_company_or_file(fitted: OpenMaxClassifier, tmp_path: Path) -> None:
    require_same_bytes(fitted, tmp_path)


@pytest.mark.filterwarnings("ignore:.*copies of other rows")
def test_small_data_work() -> None:
    require_small_data_works(OpenMaxClassifier)
    require_small_data_works(OpenMaxClassifier, distance="cosine")
