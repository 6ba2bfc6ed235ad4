"""What the heads of ANS are made of, and where their negatives lie, measured on known classes only."""

from time import perf_counter
from typing import Any

import numpy as np

from offmap.metrics import auroc
from offmap.openset import ANSClassifier
from offmap_bench.open_shares import OPEN, SHARES, Scored
from offmap_bench.table import Table
from offmap_bench.tables.decision_rules import RATIOS, sub_open_setting
from offmap_bench.tables.open_intents import COMPARED, SETS, column, own

ALPHA = 0.12
METRICS = ("auroc", "f1", "f1 at 12 %", "best f1", "false alarms")
NOISE: dict[str, Any] = {
    "head_hidden": (256,),
    "steps": 100,
    "lr": 1.4e-3,
    "negative_weight": 0.5,
    "projection": False,
    "ascent_steps": 0,
}


def variant(**change: Any) -> ANSClassifier:
    """Returns ANS with Gaussian noise as negatives, and with some parameters changed."""
    return own(ANSClassifier, **NOISE | change)


def measure(method: Any, title: str, seed: int) -> dict[str, float]:
    """Fits the sub-known classes, and scores how well sub-open rows are told from theirs at several thresholds."""
    X, y, X_test, y_test, known = sub_open_setting(title, seed)
    start = perf_counter()
    model = method.set_params(random_state=seed).fit(X, y)
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
    caption="ANS with other negatives and other heads; a half of the known classes plays the open ones.",
    rows={
        "no negatives": variant(negative_weight=0.0),
        "noise": variant(),
        "noise, weight 1": variant(negative_weight=1.0),
        "noise, projection, factor 1": variant(projection=True, radius_factor=1.0),
        "noise, projection, factor 1.6": variant(projection=True, radius_factor=1.6),
        "noise, projection, factor 2.4": variant(projection=True, radius_factor=2.4),
        "noise, projection, ascent, factor 1.6": variant(projection=True, radius_factor=1.6, ascent_steps=1),
        "noise, hidden layers of 256 and 64": variant(head_hidden=(256, 64)),
        "noise, hidden layer of 64": variant(head_hidden=(64,)),
        "noise, 200 steps": variant(steps=200, lr=7e-4),
        "noise, raw space": variant(space="raw"),
    },
    columns=tuple(column(name, ratio) for name in SETS for ratio in RATIOS),
    metrics=(*METRICS, "seconds"),
    measure=measure,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    needs=COMPARED.needs,
    notes="Only training rows of the known classes of each setting are used, as in decision-rules. The F1 is the mean "
    f"over shares of open rows of {', '.join(f'{share:.0%}' for share in SHARES)}: open rows are weighted. It is that "
    "of the own rule, then of the threshold that rejects 12 % of the test rows of sub-known classes, then of the best "
    "threshold in hindsight. False alarms are test rows of sub-known classes that the own rule rejects. Unless a row "
    "says otherwise, heads have one hidden layer of 256 and train for 100 steps in the adapted space. Frozen "
    "all-MiniLM-L6-v2 embeddings. Seconds are to fit, on a machine that other work shared.",
    higher_is_better=dict.fromkeys(METRICS[:-1], True) | {"seconds": False},
    formats=dict.fromkeys(METRICS, ".2%") | {"seconds": ".1f"},
    average=True,
)
TABLES = (SHELL,)
