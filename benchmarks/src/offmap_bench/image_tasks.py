"""Images as anomaly-detection tasks: each task is shown images of k of the ten classes, each image goes to one task."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.data import load
from offmap.metrics import entity_auroc

CLASSES = 10


def active_classes(k: int) -> NDArray[np.bool_]:
    """Which classes are active in which task, for all choices of ``k``: tasks × classes.

    Example:
        >>> active_classes(2).shape, active_classes(2)[0].nonzero()[0].tolist()
        ((45, 10), [0, 1])
    """
    return np.array([np.isin(np.arange(CLASSES), chosen) for chosen in combinations(range(CLASSES), k)])


def exposed_tasks(y: NDArray[Any], active: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draws for each image one of the tasks in which its class is active."""
    drawn = np.empty(len(y), dtype=np.int64)
    for name in range(CLASSES):
        drawn[y == name] = rng.choice(np.flatnonzero(active[:, name]), size=int((y == name).sum()))
    return drawn


@dataclass(frozen=True)
class Images:
    """Training and test images of one data set, or their features, with their classes."""

    X: NDArray[Any]
    y: NDArray[np.int64]
    X_test: NDArray[Any]
    y_test: NDArray[np.int64]

    def auroc(self, familiarity: NDArray[Any], active: NDArray[np.bool_]) -> float:
        """Mean over the tasks of the AUROC between test images of active classes and all others.

        Args:
            familiarity: Of each test image with each task: ``X_test`` × tasks.
            active: Which classes are active in which task.
        """
        nominal = active[:, self.y_test].T
        return float(np.mean(entity_auroc(familiarity, nominal, ~nominal)))


@lru_cache(maxsize=2)
def images(name: str) -> Images:
    """Reads ``mnist`` or ``cifar10``."""
    learnt, tested = load(name, "train"), load(name, "test")
    assert learnt.y is not None
    assert tested.y is not None
    return Images(learnt.X, learnt.y, tested.X, tested.y)
