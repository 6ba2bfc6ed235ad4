"""Estimates of mutual information from 5000 rows, on tasks whose truth is known in closed form."""

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
    """An estimator and its sample size.

    Args:
        estimator: Name of the estimator.
        settings: Settings of the estimator.
        rows: Number of rows drawn.
    """

    estimator: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    rows: int = 5000


def measure(method: Estimated, column: str, seed: int) -> dict[str, float]:
    """Measures the estimate and its absolute error."""
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
        "KSG, bias-improved": Estimated(estimator="ksg_improved"),
        "CCA": Estimated(estimator="gaussian"),
        "Gaussian copula": Estimated(estimator="gaussian_copula"),
        "JS": Estimated(estimator="js", settings={"hidden": (64, 64), "n_negatives": 2}),
    },
    columns=tuple(COLUMNS),
    metrics=("error", "estimate"),
    measure=measure,
    seeds={"cpu": range(3), "paper": range(10)},
    profiles={"cpu": {}, "paper": {}},
    higher_is_better={"error": False},
    average=True,
    notes="Every method sees the same rows, with standardised columns; KSG uses 3 neighbours. d×e means a variable of "
    "d columns and one of e columns. Dense: all correlations are 0.5; sparse: two pairs of columns with "
    "correlation 0.8. The warps, spirals, mixtures of columns and the roll are one to one, so they do not change "
    "the truth. The rules by which `auto` picks, and the size of its network, were chosen on other tasks and "
    "rows; fitting its Gaussian to all rows was decided after seeing Gaussian tasks of the package bmi. CCA is "
    "the Gaussian estimate from canonical correlations, corrected for its bias on Gaussian rows.",
)

TABLES = (KNOWN,)
