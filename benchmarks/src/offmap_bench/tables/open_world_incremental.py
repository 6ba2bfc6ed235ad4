"""Classes learnt in stages: what the first ones lose, and how far the end is from learning all at once."""

import copy
from dataclasses import replace
from functools import cache
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap_bench.class_learners import Analytic, FineTuned, Heads, NearestMean, StreamingLDA
from offmap_bench.table import Table
from offmap_bench.tables.open_intents import SETS, embedded

STAGES = 3
COLUMNS = (
    "BANKING 47 + 3 × 10",
    "BANKING 32 + 3 × 15",
    "BANKING 17 + 3 × 20",
    "CLINC 90 + 3 × 20",
    "CLINC 60 + 3 × 30",
    "CLINC 30 + 3 × 40",
)
METRICS = ("all", "base", "new", "drop", "below refit", "seconds")
LESSON = "CLINC 140 + 10"


@cache
def refitted(name: str) -> NDArray[np.bool_]:
    """Which test rows are right if random projection and ridge see all training rows of all classes at once."""
    (X, y), (X_test, y_test) = embedded(SETS[name], "train"), embedded(SETS[name], "test")
    return np.asarray(Analytic(refit=True).learn(X, y).predict(X_test) == y_test)


def measure(method: Any, column: str, seed: int) -> dict[str, float]:
    """Learns the base classes and three stages; accuracies after the last one, and seconds of the last one."""
    name, base, _, _, _, step = column.split()
    (X, y), (X_test, y_test) = embedded(SETS[name], "train"), embedded(SETS[name], "test")
    order = np.random.RandomState(seed).permutation(np.unique(y))
    stages = np.split(order, [int(base), int(base) + int(step), int(base) + 2 * int(step)])
    learner = copy.deepcopy(method)
    if isinstance(learner, FineTuned):
        learner = replace(learner, classes=np.sort(order))
    of_base, of_all = np.isin(y_test, stages[0]), np.isin(y_test, order)
    first, seconds = 0.0, 0.0
    for place, stage in enumerate(stages):
        rows = np.isin(y, stage)
        start = process_time()
        learner.learn(X[rows], y[rows])
        seconds = process_time() - start
        if place == 0:
            first = float(np.mean(learner.predict(X_test[of_base]) == y_test[of_base]))
    right = learner.predict(X_test) == y_test
    found = {"all": right[of_all].mean(), "base": right[of_base].mean(), "new": right[of_all & ~of_base].mean()}
    return {metric: float(value) for metric, value in found.items()} | {
        "drop": first - float(found["base"]),
        "below refit": float(refitted(name)[of_base].mean() - found["base"]),
        "seconds": seconds,
    }


def measure_lesson(method: Any, column: str, seed: int) -> dict[str, float]:
    """Learns 140 classes, then ten; seconds of the ten, and the accuracy of all in the end."""
    (X, y), (X_test, y_test) = embedded(SETS["CLINC"], "train"), embedded(SETS["CLINC"], "test")
    order = np.random.RandomState(seed).permutation(np.unique(y))
    learner, first = copy.deepcopy(method), np.isin(y, order[:140])
    learner.learn(X[first], y[first])
    start = process_time()
    learner.learn(X[~first], y[~first])
    seconds, known = process_time() - start, np.isin(y_test, order)
    return {"seconds": seconds, "all": float(np.mean(learner.predict(X_test[known]) == y_test[known]))}


TABLES = (
    Table(
        name="open-world-incremental",
        source="The splits of continual generalised intent discovery, with labels",
        caption="Class-incremental learning in three stages; only the refit sees old rows again.",
        rows={
            "nearest mean": NearestMean(),
            "streaming LDA": StreamingLDA(),
            "random projection + ridge": Analytic(),
            "the same, refitted on all rows": Analytic(refit=True),
            "adaptive negative samples": Heads(),
            "fine-tuned softmax layer": FineTuned(),
        },
        columns=COLUMNS,
        metrics=METRICS,
        measure=measure,
        seeds={"cpu": (0, 10, 20)},
        profiles={"cpu": {}},
        needs=("banking", "clinc"),
        notes="Frozen all-MiniLM-L6-v2, all training rows, all test rows. Base and new are accuracies over all classes "
        "after the last stage, on test rows of the base classes and of the others. Drop is the accuracy on the base "
        "classes among themselves, before the stages, less that at the end, among all classes. It has two parts: more "
        "classes are harder to tell apart, and classes are forgotten. Below refit is the accuracy on the base "
        "classes of random projection + ridge, fitted once on all rows of all classes, less that of the learner: for "
        "that learner what it has forgotten, for the others also what they lack from the start. "
        "Seconds are those of the processor, for the last stage.",
        higher_is_better={
            "all": True,
            "base": True,
            "new": True,
            "drop": False,
            "below refit": False,
            "seconds": False,
        },
        formats={"all": ".1%", "base": ".1%", "new": ".1%", "drop": ".1%", "below refit": ".1%", "seconds": ".2f"},
        average=True,
    ),
    Table(
        name="open-world-lesson",
        source="No paper: the time of one lesson",
        caption="Seconds to add ten classes to 140, on precomputed embeddings.",
        rows={"random projection + ridge": Analytic(), "adaptive negative samples": Heads()},
        columns=(LESSON,),
        metrics=("seconds", "all"),
        measure=measure_lesson,
        seeds={"cpu": (0, 10, 20)},
        profiles={"cpu": {}},
        needs=("clinc",),
        notes="Frozen all-MiniLM-L6-v2. Seconds are those of the processor. All is the accuracy on the test rows "
        "of the 150 classes.",
        higher_is_better={"seconds": False, "all": True},
        formats={"seconds": ".2f", "all": ".1%"},
    ),
)
