"""Where the negatives of ANS lie, measured on known classes only."""

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.metrics import auroc
from offmap.openset import ANSClassifier
from offmap_bench.open_set_scoring import ALPHA
from offmap_bench.open_shares import OPEN, Scored
from offmap_bench.table import Table
from offmap_bench.tables.decision_rules import RATIOS, sub_open_setting
from offmap_bench.tables.open_intents import COMPARED, SETS, column, own

METRICS = ("auroc", "f1", "f1 at 12 %", "best f1", "false alarms")
ANS: dict[str, Any] = {
    "head_hidden": (256,),
    "steps": 100,
    "lr": 1.4e-3,
    "negative_weight": 0.2,
    "projection": True,
    "radius_factor": 2.4,
    "ascent_steps": 1,
    "ascent_size": 0.1,
}


def variant(**change: Any) -> ANSClassifier:
    """Returns ANS with some parameters changed from those of the default."""
    return own(ANSClassifier, **ANS | change)


def measure(method: Any, title: str, seed: int) -> dict[str, float]:
    """Fits the sub-known classes, and scores how well sub-open rows are told from theirs at several thresholds."""
    return score_sub_open(method.set_params(random_state=seed), *sub_open_setting(title, seed))


def score_sub_open(
    method: Any,
    X: NDArray[Any],
    y: NDArray[Any],
    X_test: NDArray[Any],
    y_test: NDArray[Any],
    known: NDArray[Any],
) -> dict[str, float]:
    """Fits the method to the sub-known classes and scores the test rows at several thresholds."""
    start = perf_counter()
    model = method.fit(X, y)
    seconds = perf_counter() - start
    truth = np.where(np.isin(y_test, known), np.searchsorted(known, y_test), OPEN)
    found = Scored(model.novelty(X_test), np.searchsorted(known, model.predict_closed(X_test)), truth)
    of_known, of_open = found.novelty[truth != OPEN], found.novelty[truth == OPEN]
    by_own_rule, at_a_rate = found.f1(np.array([0.0, np.quantile(of_known, 1 - ALPHA)]))
    return {
        "auroc": auroc(of_known, of_open),
        "f1": float(by_own_rule),
        "f1 at 12 %": float(at_a_rate),
        "best f1": found.best_f1(),
        "false alarms": found.false_alarms(0.0),
        "seconds": seconds,
    }


SHELL = Table(
    name="open-intents-shell",
    source="No paper: the parameters of adaptive negative samples",
    caption="ANS with other negatives; half of the known classes are treated as unknown.",
    rows={
        "ANS": variant(),
        "noise and ascent": variant(projection=False),
        "factor 1.4": variant(radius_factor=1.4),
        "factor 1.6": variant(radius_factor=1.6),
        "factor 2": variant(radius_factor=2.0),
    },
    columns=tuple(column(name, ratio) for name in SETS for ratio in RATIOS),
    metrics=(*METRICS, "seconds"),
    measure=measure,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    needs=COMPARED.needs,
    notes="Only training rows of the known classes are used, as in decision-rules. F1 is the mean over 25, 50 and 75 % "
    "of open rows (by weighting): by the own rule, at 12 % false alarms on the test rows, and at the best "
    "threshold in hindsight. False alarms are those of the own rule. Each row but the first changes one thing in "
    "the default.",
    higher_is_better=dict.fromkeys(METRICS[:-1], True) | {"seconds": False},
    formats=dict.fromkeys(METRICS, ".2%") | {"seconds": ".1f"},
    average=True,
)
TABLES = (SHELL,)
