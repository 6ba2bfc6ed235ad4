"""How well a method labels rows of known classes and rejects all others, at several thresholds."""

from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from offmap.calibration import suggest_rate
from offmap.metrics import auroc, open_set_summary

# Thresholds among which the best one in hindsight is looked for.
_THRESHOLDS = 60
# At the rate of false alarms that the unlabelled test rows suggest.
SUGGESTED = ("accuracy, suggested rate", "f1, suggested rate", "suggested rate")


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
    """Fits the method, answers the test rows, and returns the metrics, the AUROC of the novelty and the seconds.

    A method whose threshold is not its own gets it from the development rows. It is then also scored at the rate of
    false alarms that the unlabelled test rows suggest.
    """
    start = perf_counter()
    model = method.fit(task.X, task.y)
    if calibrates := getattr(method, "rule", "calibrated") != "own":
        model = model.recalibrate(task.X_dev)
    answers = model.predict(task.X_test)
    seconds = perf_counter() - start
    novelty, is_known = model.novelty(task.X_test), np.isin(task.y_test, task.known)
    found = open_set_summary(task.y_test, answers, task.known, model.unknown_label_)
    found |= {"auroc": auroc(novelty[is_known], novelty[~is_known]), "seconds": seconds}
    closest = model.predict_closed(task.X_test)
    found["best f1"] = best_f1(novelty, closest, model.unknown_label_, task)
    return found | (at_suggested_rate(model, closest, task) if calibrates else {})


def at_suggested_rate(model: Any, closest: NDArray[Any], task: OpenSetTask) -> dict[str, float]:
    """The metrics at the rate of false alarms that the unlabelled test rows suggest."""
    p_value = model.p_value(task.X_test)
    alpha = suggest_rate(p_value).alpha
    answers = np.where(p_value <= alpha, model.unknown_label_, closest)
    found = open_set_summary(task.y_test, answers, task.known, model.unknown_label_)
    return dict(zip(SUGGESTED, (found["accuracy"], found["f1"], alpha), strict=True))


def best_f1(novelty: NDArray[np.float64], closest: NDArray[Any], unknown: Any, task: OpenSetTask) -> float:
    """Returns the F1 at the threshold that is best on the test rows, which nobody knows beforehand."""
    thresholds = np.quantile(novelty, np.linspace(0, 1, _THRESHOLDS))
    answers = (np.where(novelty > threshold, unknown, closest) for threshold in thresholds)
    return max(open_set_summary(task.y_test, answer, task.known, unknown)["f1"] for answer in answers)
