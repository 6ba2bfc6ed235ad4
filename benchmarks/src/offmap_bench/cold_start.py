"""Tasks with few exposures, known to a model from its training or added to it later."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap_bench.image_tasks import active_classes, exposed_tasks, images
from offmap_bench.movielens import Setting, setting

Ints = NDArray[np.int64]

EXPOSURES = (2, 5, 10, 20, 50)
COLD_FILMS, COLD_CLASSES, IMAGES = 200, 40, 20_000


@dataclass(frozen=True)
class Cold:
    """Well-known tasks, and a few of which little is known.

    Args:
        X: The rows that are shown to tasks.
        rows: Row of ``X`` of each exposure of the well-known tasks.
        tasks: The task of each of these.
        shown: Rows of ``X`` shown to each cold task, as many as the exposures of all of ``EXPOSURES`` together.
        X_test: What is asked about.
        judge: Mean AUROC over the cold tasks, from the familiarity of ``X_test`` with each of them.
    """

    X: NDArray[Any]
    rows: Ints
    tasks: Ints
    shown: Ints
    X_test: NDArray[Any]
    judge: Callable[[NDArray[Any]], float]

    def ids(self, exposures: int) -> Ints:
        """The ids of the cold tasks that are known by so many exposures."""
        return int(self.tasks.max()) + 1 + EXPOSURES.index(exposures) * len(self.shown) + np.arange(len(self.shown))

    def part(self, exposures: int) -> Ints:
        """The rows that the cold tasks of these ids are shown; no two of the five see the same."""
        start = sum(EXPOSURES[: EXPOSURES.index(exposures)])
        return self.shown[:, start : start + exposures]

    def fit_with(self, detector: Any) -> Any:
        """Fits a detector to the well-known tasks and the cold ones."""
        rows = [self.part(count).ravel() for count in EXPOSURES]
        tasks = [np.repeat(self.ids(count), count) for count in EXPOSURES]
        return detector.fit(self.X, np.concatenate([self.tasks, *tasks]), rows=np.concatenate([self.rows, *rows]))

    def fit_without(self, detector: Any) -> Any:
        """Fits a detector to the well-known tasks, and adds the cold ones afterwards."""
        detector.fit(self.X, self.tasks, rows=self.rows)
        for count in EXPOSURES:
            for task, rows in zip(self.ids(count), self.part(count), strict=True):
                detector.add_entity(int(task), self.X[rows])
        return detector

    def aurocs(self, detector: Any, name: str) -> dict[str, float]:
        """The mean AUROC for each number of exposures."""
        return {
            f"{name}, {count}": self.judge(detector.familiarity(self.X_test, self.ids(count))) for count in EXPOSURES
        }


def cold_digits(seed: int) -> Cold:
    """MNIST, three classes a task: of the 120 tasks, 40 are cold."""
    rng = np.random.default_rng(seed)
    data, active = images("mnist"), rng.permutation(active_classes(3))
    few, known = active[:COLD_CLASSES], active[COLD_CLASSES:]
    chosen = rng.permutation(len(data.y))[:IMAGES]
    X, y = data.X[chosen], data.y[chosen]
    # Images that cold tasks are shown are not shown to others.
    free, shown = np.ones(len(y), dtype=bool), []
    for classes in few:
        shown.append(rng.choice(np.flatnonzero(free & classes[y]), size=sum(EXPOSURES), replace=False))
        free[shown[-1]] = False
    rows = np.flatnonzero(free)
    return Cold(
        X, rows, exposed_tasks(y[rows], known, rng), np.array(shown), data.X_test,
        lambda familiarity: data.auroc(familiarity, few),
    )  # fmt: skip


def cold_films(seed: int, users: NDArray[np.float32]) -> Cold:
    """MovieLens: 200 films are cold; users of the most over- and under-represented age are told apart."""
    rng, split = np.random.default_rng(seed), setting(seed)
    learnt = split.training()
    films, counts = np.unique(learnt.films, return_counts=True)
    cold = np.sort(rng.choice(films[counts >= sum(EXPOSURES)], size=COLD_FILMS, replace=False))
    shown = [rng.choice(learnt.rows[learnt.films == film], size=sum(EXPOSURES), replace=False) for film in cold]
    known = learnt.only(~np.isin(learnt.films, cold))
    judged = Setting(split.data, cold, split.test_users)
    return Cold(
        users, known.rows, known.films, np.array(shown), users[split.test_users],
        lambda familiarity: judged.auroc(familiarity, "age", "lift"),
    )  # fmt: skip
