"""SelfSup: a class of mixes."""

from pathlib import Path

import numpy as np
import pytest
import torch

from offmap.openset.selfsup import Mixer, SelfSupClassifier
from tests.openset.rivals import (
    KNOWN,
    TEST_X,
    TEST_Y,
    TRAIN_X,
    TRAIN_Y,
    blobs,
    rejected,
    require_same_bytes,
    require_skill,
    require_small_data_works,
    tensor,
)


@pytest.fixture(scope="module")
def fitted() -> SelfSupClassifier:
    return SelfSupClassifier(rule="own", random_state=0).fit(TRAIN_X, TRAIN_Y)


def test_pairs_are_of_different_classes_and_all_equally_likely() -> None:
    y = torch.tensor([2, 0, 1, 0, 2, 2])
    mixer = Mixer(torch.arange(6.0)[:, None], y)
    torch.manual_seed(0)
    one, other = mixer.pairs(60_000)
    original = mixer.X.squeeze(1).long()
    counts = np.zeros((6, 6))
    np.add.at(counts, (original[one].numpy(), original[other].numpy()), 1)
    assert (counts[y[:, None] == y] == 0).all()
    for i in range(6):
        partners = (y != y[i]).numpy()
        np.testing.assert_allclose(counts[i, partners], 10_000 / partners.sum(), rtol=0.1)


def test_mixes_are_convex_with_uniform_weights_and_drawn_anew() -> None:
    y = torch.arange(40) % 4
    mixer = Mixer(torch.eye(4)[y], y)
    torch.manual_seed(0)
    mixes = mixer.draw(5000)
    assert ((mixes > 0).sum(dim=1) <= 2).all()
    assert (mixes >= 0).all()
    torch.testing.assert_close(mixes.sum(dim=1), torch.ones(5000))
    weights = np.sort(mixes.amax(dim=1).numpy())
    np.testing.assert_allclose(weights, np.linspace(0.5, 1, 5000), atol=0.02)
    assert not torch.equal(mixer.draw(5000), mixes)


def test_novelty_is_the_logarithm_of_the_odds_of_the_open_class(fitted: SelfSupClassifier) -> None:
    with torch.no_grad():
        logits = fitted.network_(tensor(TEST_X)).double().numpy() / 0.1
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    assert p.shape[1] == 8
    np.testing.assert_allclose(fitted.novelty(TEST_X), np.log(p[:, 7] / p[:, :7].max(axis=1)), atol=1e-2)
    assert ((fitted.predict(TEST_X) == -1) == (p.argmax(axis=1) == 7)).mean() > 0.999
    known = p[:, :7] / p[:, :7].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(TEST_X), known, atol=1e-3)


def test_rows_between_known_classes_are_rejected(fitted: SelfSupClassifier) -> None:
    rng = np.random.default_rng(0)
    rows, codes = TEST_X[KNOWN], TEST_Y[KNOWN]
    one, other = rng.integers(len(rows), size=(2, 500))
    between = ((rows[one] + rows[other]) / 2)[codes[one] != codes[other]]
    assert rejected(fitted, between) > 0.9
    assert rejected(fitted, rows) < 0.35


def test_more_mixes_reject_more() -> None:
    few, many = (
        SelfSupClassifier(rule="own", mixes_per_row=mixes, epochs=10, random_state=0).fit(TRAIN_X, TRAIN_Y)
        for mixes in (0.1, 3.0)
    )
    assert rejected(many, TEST_X[KNOWN]) > rejected(few, TEST_X[KNOWN]) + 0.05


def test_given_outliers_are_learned_as_open() -> None:
    X, y = blobs(80, 80)
    outliers = np.random.default_rng(1).normal(size=(100, 4)) - 8
    # Behind the classes, where no mix of them lies.
    without = SelfSupClassifier(rule="own", mixes_per_row=0.5, random_state=0).fit(X, y)
    taught = SelfSupClassifier(rule="own", outliers=outliers, mixes_per_row=0.5, random_state=0).fit(X, y)
    assert rejected(taught, outliers) > 0.95
    assert rejected(without, outliers) < 0.5
    assert np.mean(taught.predict(X) == y) > 0.85


@pytest.mark.parametrize(
    ("outliers", "message"),
    [
        (np.zeros((5, 3)), "outliers must hold rows like those of X: X has 3 features"),
        (np.full((5, 4), np.nan), "outliers must hold rows like those of X: .*NaN"),
        ([[0.0] * 4], "outliers must be a ndarray or None"),
    ],
)
def test_bad_outliers_are_named(outliers: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SelfSupClassifier(outliers=outliers, epochs=1).fit(*blobs(10, 10))  # type: ignore[arg-type]


def test_finds_unknown_digits(fitted: SelfSupClassifier) -> None:
    require_skill(fitted, closed=0.9, separation=0.88, found=0.65)


def test_scores_do_not_depend_on_company_or_file(fitted: SelfSupClassifier, tmp_path: Path) -> None:
    require_same_bytes(fitted, tmp_path)


@pytest.mark.filterwarnings("ignore:.*copies of other rows")
def test_small_data_work() -> None:
    require_small_data_works(SelfSupClassifier)
