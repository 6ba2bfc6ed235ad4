"""LOF: the local outlier factor of features."""

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from sklearn.neighbors import LocalOutlierFactor

from offmap.openset.lof import LOFClassifier
from tests.openset.rivals import (
    TEST_X,
    TRAIN_X,
    TRAIN_Y,
    Array,
    blobs,
    rejected,
    require_same_bytes,
    require_skill,
    require_small_data_works,
    tensor,
)


@pytest.fixture(scope="module")
def fitted() -> LOFClassifier:
    return LOFClassifier(rule="own", calibration=0.0, random_state=0).fit(TRAIN_X, TRAIN_Y)


def test_novelty_is_the_factor_of_the_hidden_layer(fitted: LOFClassifier) -> None:
    layers = {name: part.double().numpy() for name, part in fitted.network_.state_dict().items()}

    def hidden(rows: Array) -> Array:
        Z = (rows - layers["standardise.mean"]) / layers["standardise.scale"]
        return np.maximum(Z @ layers["body.0.0.weight"].T + layers["body.0.0.bias"], 0)

    reference = LocalOutlierFactor(n_neighbors=20, contamination=0.05, novelty=True).fit(hidden(TRAIN_X))
    np.testing.assert_allclose(fitted.novelty(TEST_X), -reference.decision_function(hidden(TEST_X)), atol=1e-3)
    with torch.no_grad():
        proba = fitted.network_(tensor(TEST_X)).softmax(dim=1).numpy()
    np.testing.assert_allclose(fitted.predict_proba(TEST_X), proba, atol=1e-5)


def test_contamination_is_the_share_of_training_rows_outside(fitted: LOFClassifier) -> None:
    loose = LOFClassifier(rule="own", calibration=0.0, contamination=0.3, random_state=0).fit(TRAIN_X, TRAIN_Y)
    # A training row is its own nearest neighbour when it is scored, so fewer than 30 % are rejected.
    assert rejected(fitted, TRAIN_X) < 0.05 < rejected(loose, TRAIN_X) < 0.3
    shift = loose.novelty(TEST_X) - fitted.novelty(TEST_X)
    assert shift.min() == pytest.approx(shift.max())


def test_another_fit_forgets_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LOFClassifier(rule="own", epochs=2, random_state=0).fit(*blobs(30, 30, width=6))
    narrow = blobs(20, 20, 20, width=4)
    fresh = LOFClassifier(rule="own", epochs=2, random_state=0).fit(*narrow).novelty(narrow[0])
    fit = Mock(wraps=LocalOutlierFactor.fit)
    monkeypatch.setattr(LocalOutlierFactor, "fit", lambda lof, rows: fit(lof, rows))
    assert model.fit(*narrow).novelty(narrow[0]).tobytes() == fresh.tobytes()
    fit.assert_called_once()


def test_rows_that_overflow_are_infinitely_novel_and_disturb_no_other(fitted: LOFClassifier) -> None:
    rows = TEST_X[:5].copy()
    rows[2] = 1e300
    novelty = fitted.novelty(rows)
    assert novelty[2] == np.inf
    assert np.delete(novelty, 2).tobytes() == np.delete(fitted.novelty(TEST_X[:5]), 2).tobytes()


@pytest.mark.parametrize("contamination", [0.0, 0.6])
def test_contamination_is_checked(contamination: float) -> None:
    with pytest.raises(ValueError, match=r"contamination must be a number above 0 and at most 0\.5"):
        LOFClassifier(contamination=contamination).fit(*blobs(10, 10))


def test_finds_unknown_digits() -> None:
    require_skill(
        LOFClassifier(rule="own", random_state=0).fit(TRAIN_X, TRAIN_Y), closed=0.9, separation=0.78, found=0.4
    )


def test_scores_do_not_depend_on_company_or_file(fitted: LOFClassifier, tmp_path: Path) -> None:
    require_same_bytes(fitted, tmp_path)


@pytest.mark.filterwarnings("ignore:.*copies of other rows")
def test_small_data_work() -> None:
    require_small_data_works(LOFClassifier)
