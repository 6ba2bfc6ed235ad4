"""How well a method labels rows of known classes and rejects all others, at several thresholds."""

from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from offmap.base import OpenSetClassifier
from offmap.calibration import p_values, suggest_rate
from offmap.labels import choose_unknown_label
from offmap.metrics import auroc, open_set_summary

# By the method's own rule; undefined if it has none.
OWN_RULE = ("accuracy", "f1", "f1_open", "f1_known")
# Thresholds among which the best one in hindsight is looked for.
_THRESHOLDS = 60
# Share of the development rows that a threshold rejects; chosen by the table open-intents-threshold.
ALPHA = 0.12
AT_RATE = ("accuracy, 12 %", "f1, 12 %")
# At the rate of false alarms that the unlabelled test rows suggest.
SUGGESTED = ("accuracy, suggested rate", "f1, suggested rate")
RATE = "suggested rate"
Floats = NDArray[np.float64]


class OpenSetTask(NamedTuple):
    """Rows of one setting.

    Args:
        X: Training rows of the known classes.
        y: Their labels.
        X_dev: Development rows of the known classes, which set thresholds.
        X_test: Test rows of all classes.
        y_test: Their labels.
        known: The known classes.
    """

    X: NDArray[Any]
    y: NDArray[Any]
    X_dev: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    known: NDArray[Any]


def score(method: Any, task: OpenSetTask) -> dict[str, float]:
    """Fits the method and scores its answers to the test rows at several thresholds.

    The thresholds are the method's own if it has one, the one that rejects 12 % of the development rows, and the one
    at the rate of false alarms that the unlabelled test rows suggest.
    """
    start = perf_counter()
    model = method.fit(task.X, task.y)
    novelty, closest = answered(model, task.X_test)
    seconds = perf_counter() - start
    unknown, is_known = choose_unknown_label(task.known, None), np.isin(task.y_test, task.known)
    found = dict.fromkeys(OWN_RULE, np.nan)
    if isinstance(model, OpenSetClassifier):
        answers = np.where(novelty > model.threshold_, unknown, closest)
        found = open_set_summary(task.y_test, answers, task.known, unknown)
    p_value = p_values(np.sort(model.novelty(task.X_dev)), novelty)
    return found | {
        **at_rates(p_value, closest, unknown, task),
        "best f1": best_f1(novelty, closest, unknown, task),
        "auroc": auroc(novelty[is_known], novelty[~is_known]),
        "seconds": seconds,
    }


def answered(model: Any, X: NDArray[Any]) -> tuple[Floats, NDArray[Any]]:
    """The novelty and the likeliest known class of each row, in one pass where the model can do so."""
    if not isinstance(model, OpenSetClassifier):
        return model.novelty(X), model.predict_closed(X)
    verdict = model.assess(X)
    assert verdict.closest is not None
    return verdict.novelty, verdict.closest


def at_rates(p_value: Floats, closest: NDArray[Any], unknown: Any, task: OpenSetTask) -> dict[str, float]:
    """Accuracy and F1 if rows are rejected at the fixed rate of false alarms, and at the suggested one."""
    suggested = suggest_rate(p_value).alpha
    found: dict[str, float] = {}
    for names, alpha in ((AT_RATE, ALPHA), (SUGGESTED, suggested)):
        answers = np.where(p_value <= alpha, unknown, closest)
        summary = open_set_summary(task.y_test, answers, task.known, unknown)
        found |= zip(names, (summary["accuracy"], summary["f1"]), strict=True)
    return found | {RATE: suggested}


def best_f1(novelty: Floats, closest: NDArray[Any], unknown: Any, task: OpenSetTask) -> float:
    """Returns the F1 at the threshold that is best on the test rows, which nobody knows beforehand."""
    thresholds = np.quantile(novelty, np.linspace(0, 1, _THRESHOLDS))
    answers = (np.where(novelty > threshold, unknown, closest) for threshold in thresholds)
    return max(open_set_summary(task.y_test, answer, task.known, unknown)["f1"] for answer in answers)
