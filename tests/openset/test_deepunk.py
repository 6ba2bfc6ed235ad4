"""DeepUnk: large margin cosine loss, then the local outlier factor."""

from math import exp, log
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import LocalOutlierFactor

from offmap.openset.deepunk import CosineHead, DeepUnkClassifier, large_margin_loss
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
def fitted() -> DeepUnkClassifier:
    return DeepUnkClassifier(rule="own", calibration=0.0, random_state=0).fit(TRAIN_X, TRAIN_Y)


def cosines(model: DeepUnkClassifier, rows: Array) -> Array:
    with torch.no_grad():
        return model.network_(tensor(rows)).numpy() / model.scale


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), *[st.floats(-1, 1)] * 3), min_size=1, max_size=10))
def test_loss_takes_the_margin_from_the_cosine_of_the_own_class(rows: list[tuple[float, ...]]) -> None:
    expected = 0.0
    for code, *cosine in rows:
        own = exp(30 * (cosine[int(code)] - 0.35))
        others = sum(exp(30 * c) for k, c in enumerate(cosine) if k != code)
        expected -= log(own / (own + others)) / len(rows)
    table = torch.tensor(rows, dtype=torch.float64)
    found = large_margin_loss(30 * table[:, 1:], table[:, 0].long(), margin=30 * 0.35)
    assert float(found) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_training_minimises_that_loss() -> None:
    model = DeepUnkClassifier(rule="own", calibration=0.0, dropout=0.0, epochs=40, random_state=0).fit(TRAIN_X, TRAIN_Y)
    cosine = torch.from_numpy(cosines(model, TRAIN_X))
    loss = large_margin_loss(30 * cosine, torch.from_numpy(TRAIN_Y), margin=30 * 0.35)
    assert float(loss) == pytest.approx(model.history_["classification"][-1], rel=0.3)
    assert loss < 0.1 * model.history_["classification"][0]


def test_head_sees_angles_alone() -> None:
    head = CosineHead(5, 3, scale=30.0)
    rows = torch.randn(8, 5, generator=torch.Generator().manual_seed(0))
    norms = rows.norm(dim=1)[:, None] * head.weight.norm(dim=1)
    torch.testing.assert_close(head(rows), 30 * rows @ head.weight.T / norms)
    torch.testing.assert_close(head(7 * rows), head(rows))


def test_margin_widens_the_gap_between_the_own_class_and_the_next(fitted: DeepUnkClassifier) -> None:
    def gap(model: DeepUnkClassifier) -> float:
        cosine, own = cosines(model, TRAIN_X), np.arange(7) == TRAIN_Y[:, None]
        return float(np.median(cosine[own] - np.where(own, -1, cosine).max(axis=1)))

    without = DeepUnkClassifier(rule="own", calibration=0.0, margin=0.0, random_state=0).fit(TRAIN_X, TRAIN_Y)
    assert gap(fitted) > gap(without) + 0.15


def test_novelty_is_the_outlier_factor_of_features_of_length_one(fitted: DeepUnkClassifier) -> None:
    def directions(rows: Array) -> Array:
        with torch.no_grad():
            features = fitted.network_.features(tensor(rows)).double().numpy()
        return features / np.linalg.norm(features, axis=1, keepdims=True)

    reference = LocalOutlierFactor(n_neighbors=20, contamination=0.05, novelty=True).fit(directions(TRAIN_X))
    np.testing.assert_allclose(fitted.novelty(TEST_X), -reference.decision_function(directions(TEST_X)), atol=1e-3)


def test_finds_unknown_digits(fitted: DeepUnkClassifier) -> None:
    require_skill(fitted, closed=0.9, separation=0.88, found=0.7)


def test_scores_do_not_depend_on_company_or_file(fitted: DeepUnkClassifier, tmp_path: Path) -> None:
    require_same_bytes(fitted, tmp_path)


@pytest.mark.filterwarnings("ignore:.*copies of other rows")
def test_small_data_work() -> None:
    require_small_data_works(DeepUnkClassifier)
