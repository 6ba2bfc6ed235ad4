"""Groups: as many as there are classes, at the scale of the known ones; odd rows stay out."""

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, homogeneity_score

from offmap.loop.grouping import UNGROUPED, halves, join, propose
from offmap.loop.naming import telling_words, word_counts
from offmap.loop.spread import Spread, distances


def problem(seed: int, classes: int = 12, rows: int = 40, width: int = 16) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(classes), rows)
    X = 2.2 * rng.normal(size=(classes, width))[y] + rng.normal(size=(len(y), width))
    return X.astype(np.float32), y


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_the_number_of_groups_is_found_at_any_scale(scale: float) -> None:
    for seed in range(3):
        X, y = problem(seed)
        X = X * np.float32(scale)
        spread = Spread.of(X[y < 4], y[y < 4])
        found = propose(X[y >= 4], spread, min_size=5, rng=np.random.default_rng(0))
        grouped = found != UNGROUPED
        assert 8 <= found.max() + 1 <= 20
        assert grouped.mean() > 0.8
        assert homogeneity_score(y[y >= 4][grouped], found[grouped]) > 0.97


def test_a_feature_with_a_large_unit_does_not_decide_alone() -> None:
    X, y = problem(0)
    X[:, 0] = 1000 * np.random.default_rng(1).normal(size=len(X))
    spread = Spread.of(X[y < 4], y[y < 4])
    found = propose(X[y >= 4], spread, min_size=5, rng=np.random.default_rng(0))
    grouped = found != UNGROUPED
    assert grouped.mean() > 0.7
    assert homogeneity_score(y[y >= 4][grouped], found[grouped]) > 0.9


def test_odd_rows_and_small_groups_stay_out() -> None:
    X, y = problem(0)
    spread = Spread.of(X[y < 4], y[y < 4])
    odd = (25 * np.random.default_rng(1).normal(size=(10, 16))).astype(np.float32)
    found = propose(np.concatenate([X[y >= 4], odd]), spread, min_size=5, rng=np.random.default_rng(0))
    assert (found[-10:] == UNGROUPED).all()
    assert np.bincount(found[found >= 0]).min() >= 5
    assert (propose(X[:3], spread, min_size=5, rng=np.random.default_rng(0)) == UNGROUPED).all()


def test_rows_beyond_the_sample_are_grouped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offmap.loop.grouping._MOST_WAITING", 200)
    X, y = problem(0)
    found = propose(X[y >= 4], Spread.of(X[y < 4], y[y < 4]), min_size=5, rng=np.random.default_rng(0))
    grouped = found != UNGROUPED
    assert grouped.mean() > 0.7
    assert homogeneity_score(y[y >= 4][grouped], found[grouped]) > 0.9


def test_new_rows_join_the_group_they_lie_in_and_no_known_class() -> None:
    X, y = problem(0)
    spread = Spread.of(X[y < 4], y[y < 4])
    groups = {30: X[y == 4][:20], 31: X[y == 5][:20]}
    joined = join(np.concatenate([X[y == 4][20:], X[y == 5][20:], X[y == 0]]), groups, spread)
    assert set(joined) == {30, 31}
    assert set(joined[30]) <= set(range(20))
    assert set(joined[31]) <= set(range(20, 40))
    assert len(joined[30]) + len(joined[31]) > 36


def test_a_mixed_group_is_split_where_its_classes_meet() -> None:
    X, y = problem(0)
    mixed = np.isin(y, [4, 5])
    side = halves(X[mixed], Spread.of(X[y < 4], y[y < 4]))
    assert adjusted_rand_score(y[mixed], side) > 0.95


def test_distances_are_euclidean() -> None:
    rng = np.random.default_rng(0)
    rows, centres = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
    naive = [[np.sqrt(((row - centre) ** 2).sum()) for centre in centres] for row in rows]
    np.testing.assert_allclose(distances(rows, centres), naive, atol=1e-7)


def test_telling_words_follow_the_formula_and_need_no_words_at_all() -> None:
    texts = {1: ["card lost", "card stolen"], 2: ["weather rain", "weather sun sun"], 3: ["the of", "and"]}
    found = telling_words({group: word_counts(own) for group, own in texts.items()}, count=2)
    assert found[1][0] == "card"
    assert found[2][0] in ("weather", "sun")
    assert found[3] == []
    assert telling_words({1: word_counts(["the"])}) == {1: []}
    assert telling_words({1: word_counts(["x" * 41, "Donaudampfschifffahrt"])}) == {1: ["donaudampfschifffahrt"]}
