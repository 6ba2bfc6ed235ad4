"""Mutual informations that are known in closed form, beside what estimators make of 5000 rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from offmap.dependence import mutual_information
from offmap_bench.table import Table
from offmap_bench.tables.known_information_tasks import TASKS

COLUMNS = {f"{name} ({task.truth:.2f})": task for name, task in TASKS.items()}


@dataclass(frozen=True, kw_only=True)
class Estimated:
    """An estimator, and the rows that it sees.

    Args:
        estimator: Its name.
        settings: Of the estimator.
        rows: How many are drawn.
    """

    estimator: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    rows: int = 5000


def measure(method: Estimated, column: str, seed: int) -> dict[str, float]:
    """The estimate, and how far it is from the truth."""
    task = COLUMNS[column]
    x, y = task.draw(method.rows, np.random.default_rng([seed, list(COLUMNS).index(column)]))
    found = mutual_information(x, y, method.estimator, random_state=seed, **method.settings)
    return {"error": abs(found.value - task.truth), "estimate": found.value}


KNOWN = Table(
    name="known-information",
    source="No paper: tasks after Czyż et al., Beyond Normal: On the Evaluation of Mutual Information Estimators",
    caption="Absolute error in nats of estimates from 5000 rows; the truth is in parentheses after each task.",
    rows={
        "auto": Estimated(estimator="auto"),
        "KSG": Estimated(estimator="ksg"),
        "KSG, bias-improved": Estimated(estimator="ksg-improved"),
        "CCA": Estimated(estimator="gaussian"),
        "Gaussian copula": Estimated(estimator="gaussian-copula"),
        "JS": Estimated(estimator="js", settings={"hidden": (64, 64), "negatives": 2}),
    },
    columns=tuple(COLUMNS),
    metrics=("error", "estimate"),
    measure=measure,
    seeds={"cpu": range(3), "paper": range(10)},
    profiles={"cpu": {}, "paper": {}},
    higher_is_better={"error": False},
    average=True,
    notes="Every method sees the same rows, with standardised columns; KSG has 3 neighbours. A variable of d columns "
    "and one of e are d×e. Dense: all correlations 0.5; sparse: two pairs of columns with 0.8. Warped columns, "
    "spirals, mixtures of columns and the roll are one to one and leave the truth as it is. The rules by which `auto` "
    "picks and the size of its network were set on other tasks and rows; that its Gaussian is fitted to all rows was "
    "decided after Gaussian tasks of the package bmi. CCA is the Gaussian estimate from canonical correlations, freed "
    "of its bias for Gaussian rows.",
)

TABLES = (KNOWN,)
