"""The promise over rounds: which rows set the threshold of a version, and what may be said of its false-alarm rate."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from offmap.arrays import FloatArray
from offmap.calibration import CalibrationWarning, Promise, RateInterval
from offmap.openset.incremental import IncrementalClassifier


# Calibration rows are repeated until there are so many.
_ENOUGH = 100


@dataclass(frozen=True)
class Calibration:
    """How the threshold of a version was set.

    Args:
        alpha: The rate that was asked for.
        rows: Number of rows that set the threshold.
        audits: How many audit rows of known classes there were.
        uncovered: Classes that were learnt from groups, if no audit row says how the stream brings them.
        expected: The rate to expect, with its 95 % interval; None with a method's own rule.
    """

    alpha: float
    rows: int
    audits: int
    uncovered: int
    expected: tuple[float, float, float] | None

    @property
    def holds(self) -> bool:
        """Whether the threshold keeps ``alpha``: enough rows, and of all classes."""
        return self.expected is not None and not self.missing and not self.uncovered

    @property
    def missing(self) -> int:
        """How many more rows of known classes the threshold needs to keep ``alpha``."""
        return max(0, rows_needed(self.alpha) - self.rows)

    def to_json(self) -> dict[str, Any]:
        """Plain values, as the journal keeps them."""
        return asdict(self)


def rows_needed(alpha: float) -> int:
    """The fewest calibration rows with which a threshold can promise ``alpha``.

    Example:
        >>> rows_needed(0.05), rows_needed(0.1)
        (19, 9)
    """
    return math.ceil(1 / alpha - 1e-9) - 1


def calibrate(
    model: IncrementalClassifier, X: NDArray[Any] | None, labels: Sequence[Any], trained: Sequence[bool] = ()
) -> Calibration:
    """Sets the threshold on audit rows, which are a random sample of the stream, and says what that is worth.

    Rows of groups that were named cannot set it: they were rejected first, so they are the novel ones of their class,
    and a threshold set on them is too low or too high. Of classes with held-out rows (those that were taught), these
    rows stand in for the audit rows: as many order statistics as there were audit rows, which keeps the mix of classes
    of the stream and adds less noise.

    Args:
        model: The classifier; its ``promise_`` is replaced.
        X: Audit rows; None if there are none.
        labels: Their classes; rows of classes that the model does not know do not count.
        trained: Whether each row has trained the model; it then counts as if it had not. By default none has.
    """
    known = np.isin(np.asarray(labels), model.classes_) if len(labels) else np.empty(0, bool)
    uncovered = np.setdiff1d(model.classes_, model.held_out_labels_)
    if X is None or not known.any():
        return _said(model, 0, len(uncovered))
    answers, trained = np.asarray(labels)[known], trained or [False] * len(labels)
    taught = np.isin(answers, model.held_out_labels_)
    if len(uncovered) == 0 and len(answers) < rows_needed(model.alpha):
        return _said(model, len(answers), 0)
    novelty = _unseen_novelty(model, X[known], answers, np.asarray(trained)[known])
    stand_in = np.concatenate([novelty[taught], model.calibration_novelty_])
    # Few rows are repeated: a few order statistics of the stand-ins would leave out their tail.
    times = math.ceil(_ENOUGH / len(answers))
    mixed = np.concatenate([np.repeat(novelty[~taught], times), order_statistics(stand_in, times * int(taught.sum()))])
    if model.rule == "calibrated":
        with warnings.catch_warnings():
            # Too few rows are reported in the status, every time, not only once as a warning.
            warnings.simplefilter("ignore", CalibrationWarning)
            model.promise_ = Promise(alpha=model.alpha).fit(mixed)
    return _said(model, len(answers), 0, rows=len(answers))


def leaves_out(model: IncrementalClassifier) -> bool:
    """Whether the model can score a training row as if it had not seen it; audit rows then train as well."""
    return hasattr(model, "left_out_novelty")


def _unseen_novelty(model: Any, X: NDArray[Any], labels: NDArray[Any], trained: NDArray[np.bool_]) -> FloatArray:
    """The novelty of each row for a model that has not seen it."""
    novelty = np.empty(len(X))
    if not trained.all():
        novelty[~trained] = model.novelty(X[~trained])
    if trained.any():
        novelty[trained] = model.left_out_novelty(X[trained], labels[trained])
    return novelty


def order_statistics(values: FloatArray, count: int) -> FloatArray:
    """Evenly spaced order statistics: ``count`` values that are distributed as all of them.

    Example:
        >>> order_statistics(np.arange(100.0), 4)
        array([12., 37., 62., 87.])
    """
    places = (np.arange(count) + 0.5) / max(count, 1) * len(values)
    return np.sort(values)[places.astype(int)]


def measured(alarms: int, rows: int) -> RateInterval | None:
    """The false-alarm rate on audit rows that set no threshold, with the 95 % interval of Clopper and Pearson.

    Example:
        >>> print(measured(7, 160))
        4.4% [1.8%, 8.8%] on 160 held-out rows
    """
    if not rows:
        return None
    low = float(beta.ppf(0.025, alarms, rows - alarms + 1)) if alarms else 0.0
    high = float(beta.ppf(0.975, alarms + 1, rows - alarms)) if alarms < rows else 1.0
    return RateInterval(alarms / rows, low, high, rows)


def _said(model: IncrementalClassifier, audits: int, uncovered: int, rows: int | None = None) -> Calibration:
    """What the threshold is worth; repeated rows count once."""
    promise, rows = model.promise_, len(model.calibration_novelty_) if rows is None else rows
    if model.rule == "own" or not rows:
        return Calibration(model.alpha, rows, audits, uncovered, None)
    above = round(rows * float(promise.novel(promise.calibration_novelty_).mean()))
    low, high = (float(beta.ppf(end, above + 1, max(rows - above, 1))) for end in (0.025, 0.975))
    return Calibration(model.alpha, rows, audits, uncovered, ((above + 1) / (rows + 1), low, high))
