"""The F1 at every threshold and for several shares of open rows, and the thresholds chosen by it."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from offmap_bench.open_shares import OPEN, SHARES, Scored
from offmap_bench.tables.open_intents_threshold import FalseAlarms, InHindsight, Problem, SubOpen, nearest


def some_rows(seed: int = 0, classes: int = 4) -> Scored:
    rng = np.random.default_rng(seed)
    truth = rng.integers(OPEN, classes, 300)
    label = np.where(rng.random(300) < 0.8, np.maximum(truth, 0), rng.integers(0, classes, 300))
    return Scored(rng.normal(size=300) - 1.5 * (truth != OPEN), label, truth)


def test_the_f1_is_that_of_weighted_answers() -> None:
    scored = some_rows()
    thresholds = scored.thresholds()[::40]
    is_open = scored.truth == OPEN
    for threshold, found in zip(thresholds, scored.f1(thresholds), strict=True):
        answers = np.where(scored.novelty > threshold, OPEN, scored.label)
        naive = []
        for share in SHARES:
            weights = np.where(is_open, share / (1 - share) * (~is_open).sum() / is_open.sum(), 1.0)
            assert weights[is_open].sum() / weights.sum() == pytest.approx(share)
            labels = [OPEN, *range(4)]
            naive.append(f1_score(scored.truth, answers, labels=labels, average="macro", sample_weight=weights))
        assert found == pytest.approx(np.mean(naive))
    assert scored.best_f1() >= scored.f1(thresholds).max()


def test_false_alarms_are_known_rows_above_the_threshold() -> None:
    scored = Scored(np.array([0.0, 1.0, 2.0, 3.0]), np.zeros(4, int), np.array([0, 0, 0, OPEN]))
    assert scored.false_alarms(0.5) == pytest.approx(2 / 3)


@pytest.fixture(scope="module")
def blobs() -> Problem:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(16, 24))
    y = np.repeat(np.arange(16), 60)
    X = centres[y] + 0.8 * rng.normal(size=(960, 24))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    train = (y < 8) & (np.arange(960) % 2 == 0)
    test = np.arange(960) % 2 == 1
    truth = np.where(y[test] < 8, y[test], OPEN)
    return Problem(X[train], y[train], nearest(X[train], y[train], X[test], truth))


def test_the_nearest_row_labels_and_scores(blobs: Problem) -> None:
    cosines = blobs.X[:20] @ blobs.X.T
    found = nearest(blobs.X, blobs.y, blobs.X[:20], blobs.y[:20])
    np.testing.assert_allclose(found.novelty, -cosines.max(axis=1))
    assert (found.label == blobs.y[:20]).all()


@pytest.mark.parametrize("rule", [FalseAlarms(0.1), SubOpen(0.5)], ids=str)
def test_a_chosen_threshold_is_nearly_as_good_as_the_best(rule: FalseAlarms | SubOpen, blobs: Problem) -> None:
    best, chosen = (each(blobs, np.random.default_rng(0)) for each in (InHindsight(), rule))
    highest, found, nothing = blobs.tested.f1(np.array([best, chosen, np.inf]))
    assert highest == pytest.approx(blobs.tested.best_f1())
    assert nothing + 0.1 < found <= highest


def test_a_rate_of_false_alarms_is_kept_on_the_test_rows(blobs: Problem) -> None:
    thresholds = [FalseAlarms(0.1)(blobs, np.random.default_rng(seed)) for seed in range(40)]
    assert np.mean([blobs.tested.false_alarms(each) for each in thresholds]) == pytest.approx(0.1, abs=0.03)
