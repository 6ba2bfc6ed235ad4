"""DOC: sigmoids with a threshold each."""

from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from offmap.openset.doc import DOCClassifier, one_versus_rest_loss, spread_around_one
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
def fitted() -> DOCClassifier:
    return DOCClassifier(rule="own", random_state=0).fit(TRAIN_X, TRAIN_Y)


def sigmoids(model: DOCClassifier, rows: Array) -> Array:
    with torch.no_grad():
        logits = model.network_(tensor(rows)).double().numpy()
    return 1 / (1 + np.exp(-logits))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1)), min_size=1, max_size=30))
def test_spread_is_the_deviation_of_probabilities_and_their_mirror_images(rows: list[tuple[int, float]]) -> None:
    rows = [*rows, (0, 0.3), (1, 1.0), (2, 0.9)]
    codes, own = (torch.tensor(column) for column in zip(*rows, strict=True))
    found = spread_around_one(own.double(), codes, classes=3)
    for k in range(3):
        positives = [float(p) for code, p in rows if code == k]
        mirrored = positives + [2 - p for p in positives]
        assert float(found[k]) == pytest.approx(np.std(mirrored), rel=1e-6, abs=1e-7)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), *[st.floats(-8, 8)] * 3), min_size=1, max_size=10))
def test_loss_is_binary_cross_entropy_of_each_class_against_the_rest(rows: list[tuple[float, ...]]) -> None:
    expected = 0.0
    for code, *logits in rows:
        for k, logit in enumerate(logits):
            p = 1 / (1 + np.exp(-logit))
            expected -= log(p) if k == code else log(1 - p)
    table = torch.tensor(rows, dtype=torch.float64)
    found = one_versus_rest_loss(table[:, 1:], table[:, 0].long())
    assert float(found) == pytest.approx(expected / (3 * len(rows)), rel=1e-6)


def test_thresholds_come_from_the_training_rows_of_each_class() -> None:
    model = DOCClassifier(rule="own", calibration=0.0, epochs=5, random_state=0).fit(TRAIN_X, TRAIN_Y)
    p = sigmoids(model, TRAIN_X)
    for k in range(7):
        positives = p[k == TRAIN_Y, k]
        sigma = np.std(np.concatenate([positives, 2 - positives]))
        assert model.class_thresholds_[k] == pytest.approx(max(0.5, 1 - 3 * sigma), abs=1e-5)
    # With few epochs some classes reach the floor and some do not: both sides of the maximum are seen.
    assert model.class_thresholds_.min() == 0.5
    assert model.class_thresholds_.max() > 0.5
    strict = DOCClassifier(rule="own", calibration=0.0, epochs=5, random_state=0, deviations=0.1).fit(TRAIN_X, TRAIN_Y)
    assert (strict.class_thresholds_ > model.class_thresholds_).all()


def test_rejects_just_where_every_class_is_below_its_threshold(fitted: DOCClassifier) -> None:
    p = sigmoids(fitted, TEST_X)
    nobody = (p < fitted.class_thresholds_).all(axis=1)
    clear = np.abs(p - fitted.class_thresholds_).min(axis=1) > 1e-5
    assert 0.1 < nobody.mean() < 0.9
    assert ((fitted.predict(TEST_X) == -1) == nobody)[clear].all()
    np.testing.assert_allclose(
        fitted.novelty(TEST_X), -(p - fitted.class_thresholds_).max(axis=1), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(fitted.predict_proba(TEST_X), p / p.sum(axis=1, keepdims=True), rtol=1e-3, atol=1e-7)


def test_finds_unknown_digits(fitted: DOCClassifier) -> None:
    require_skill(fitted, closed=0.9, separation=0.86, found=0.7)


def test_scores_do_not_depend_on_company_or_file(fitted: DOCClassifier, tmp_path: Path) -> None:
    require_same_bytes(fitted, tmp_path)


@pytest.mark.filterwarnings("ignore:.*copies of other rows")
def test_small_data_work() -> None:
    require_small_data_works(DOCClassifier)
