"""Cold tasks: five of each, none sharing a row, trained or added, judged alike."""

from typing import Any

import numpy as np
import pytest

from offmap.data import DataNotFound
from offmap_bench.cold_start import EXPOSURES, Cold, cold_digits


class Means:
    """Remembers the mean row of each task: familiarity is minus the distance to it."""

    def fit(self, X: Any, tasks: Any, rows: Any) -> "Means":
        self.means = {int(task): X[rows[tasks == task]].mean(axis=0) for task in np.unique(tasks)}
        return self

    def add_entity(self, task: int, X: Any) -> "Means":
        assert task not in self.means
        self.means[task] = X.mean(axis=0)
        return self

    def familiarity(self, X: Any, tasks: Any) -> Any:
        return -np.array([np.linalg.norm(X - self.means[int(task)], axis=1) for task in tasks]).T


@pytest.fixture
def cold() -> Cold:
    """Three cold tasks around points of their own, two well-known tasks around others."""
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [9, 9], [5, 0], [0, 5], [-5, 0]])
    X = np.concatenate([centre + rng.normal(scale=2.0, size=(87, 2)) for centre in centres])
    rows = np.arange(len(X)).reshape(5, 87)
    truth = np.repeat(np.arange(3), 50)
    X_test = centres[2:][truth] + rng.normal(scale=2.0, size=(150, 2))

    def judge(familiarity: Any) -> float:
        return float(np.mean(familiarity.argmax(axis=1) == truth))

    return Cold(X, rows[:2].ravel(), np.repeat([3, 4], 87), rows[2:], X_test, judge)


def test_no_row_is_shown_twice_and_no_id_is_given_twice(cold: Cold) -> None:
    shown = np.concatenate([cold.part(count).ravel() for count in EXPOSURES])
    assert sorted(shown.tolist()) == sorted(cold.shown.ravel().tolist())
    ids = np.concatenate([cold.tasks, *(cold.ids(count) for count in EXPOSURES)])
    assert len(np.unique(ids)) == 2 + 3 * len(EXPOSURES)
    assert [cold.part(count).shape for count in EXPOSURES] == [(3, count) for count in EXPOSURES]


def test_tasks_added_later_are_those_that_were_trained(cold: Cold) -> None:
    """A method without anything to train sees no difference."""
    seen, unseen = cold.aurocs(cold.fit_with(Means()), "x"), cold.aurocs(cold.fit_without(Means()), "x")
    assert seen == unseen
    assert list(seen) == [f"x, {count}" for count in EXPOSURES]
    assert seen["x, 50"] >= seen["x, 2"]
    assert seen["x, 50"] > 0.85


@pytest.mark.data
def test_cold_digits_are_of_the_active_classes_and_of_no_other_task() -> None:
    try:
        found = cold_digits(0)
    except DataNotFound as error:
        pytest.skip(str(error))
    assert found.shown.shape == (40, sum(EXPOSURES))
    assert not np.isin(found.shown, found.rows).any()
    assert len(np.unique(found.shown)) == found.shown.size
    assert len(np.unique(found.tasks)) == 80
