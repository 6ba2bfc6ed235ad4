"""What is promised of a fitted model, in words."""

from typing import Any

import numpy as np

from offmap.calibration.contamination import trimmed_rate
from offmap.calibration.surprise import surprise_steps

_BY_CLASS = {
    "predicted": "It holds for the rows that are named as each class",
    "actual": "It holds closely, not exactly, for the rows that are of each class",
}


def in_words(model: Any) -> str:
    """One paragraph that says which rate is promised, over what, and which rows it does not cover."""
    promise = model.promise_
    if promise.rate is None:
        return "No false-alarm rate is promised: " + (
            "the threshold is the method's own." if promise.has_rows else "no rows were held out."
        )
    rate, n = f"{promise.rate:.3g}", len(promise.calibration_novelty_)
    said = [_main(model, rate, n)]
    attained = promise.false_alarm_rate.rate
    if promise.confidence is None and attained < promise.rate / 2:
        said.append(f"Many held-out rows share one novelty: the rate that is attained is {attained:.2g}.")
    if (by_class := getattr(model, "class_promise_", None)) is not None:
        said.append(f"{_BY_CLASS[by_class.by]}.")
        if len(pooled := by_class.pooled):
            listed = _listed([str(name) for name in model.classes_[pooled]])
            said.append(f"These classes have too few held-out rows for a rate of their own: {listed}.")
    if left_out := getattr(model, "uncovered_", None):
        said.append(f"It does not cover rows of these, which had too few rows to hold any out: {_listed(left_out)}.")
    if trimmed := getattr(model, "trimmed_", 0.0):
        worst = trimmed_rate(promise.rate, trimmed)
        said.append(
            f"{trimmed:.2g} of the rows looked novel and were left out: the rate is that of normal rows like the "
            f"others. If all of those were normal after all, it is up to {worst:.2g}."
        )
    return " ".join(said)


def at_most_or_about(model: Any) -> str:
    """How the promised rate is kept: "at most" is exact; by CV+ and by the actual class it is "about" that rate."""
    by_class = getattr(model, "class_promise_", None)
    return "about" if calibrated_by_folds(model) or (by_class is not None and by_class.by == "actual") else "at most"


def calibrated_by_folds(model: Any) -> bool:
    """Whether the models of folds calibrate. Rows that recalibrate have trained none of them: they were held out."""
    held_out = model.calibration_novelty_
    return hasattr(model, "members_") and np.array_equal(held_out, surprise_steps(len(held_out)))


def _main(model: Any, rate: str, n: int) -> str:
    if calibrated_by_folds(model):
        return (
            f"A normal row is flagged with a probability of about {rate} ({n} rows, {len(model.members_)} models; at "
            "most twice as much is proven)."
        )
    if model.promise_.confidence is not None:
        return (
            f"At most {rate} of normal rows are flagged by this very model, with confidence "
            f"{model.promise_.confidence:g} ({n} held-out rows)."
        )
    return (
        f"A normal row is flagged with a probability of at most {rate}, over the draw of the {n} held-out rows as well."
    )


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
