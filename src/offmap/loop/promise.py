"""The promise over rounds: which rows set the threshold of a version, and what may be said of its false-alarm rate."""

import math
import warnings
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from offmap.arrays import FloatArray
from offmap.calibration import CalibrationWarning, Promise
from offmap.loop.mixture import known_novelty
from offmap.openset.incremental import IncrementalClassifier

# Values that stand in for audit rows until there are some.
_ENOUGH = 100


class AuditedRate(NamedTuple):
    """The false-alarm rate on audit rows of known classes, and its 95 % confidence interval.

    Example:
        >>> print(AuditedRate(0.04, 0.01, 0.1, 100))
        4.0% [1.0%, 10.0%] on 100 audit rows of known classes
    """

    rate: float
    low: float
    high: float
    rows: int

    def __str__(self) -> str:
        counted = "1 audit row of a known class" if self.rows == 1 else f"{self.rows:,} audit rows of known classes"
        return f"{self.rate:.1%} [{self.low:.1%}, {self.high:.1%}] on {counted}"


@dataclass(frozen=True)
class Calibration:
    """How the threshold of a version was set.

    Args:
        alpha: The rate that was asked for.
        rows: Number of rows that set the threshold.
        audits: How many audit rows of known classes there were.
        uncovered: Classes that were learnt from groups, if no audit row says how the stream brings them.
        expected: The rate to expect, with its 95 % interval; None with a method's own rule.
        estimated: Whether the rate is an estimate from audit rows and the stream rather than a guarantee.
    """

    alpha: float
    rows: int
    audits: int
    uncovered: int
    expected: tuple[float, float, float] | None
    estimated: bool = False

    @property
    def holds(self) -> bool:
        """Whether the threshold keeps ``alpha``: enough rows, and of all classes."""
        return self.expected is not None and not self.missing and not self.uncovered

    @property
    def missing(self) -> int:
        """How many more rows of known classes the threshold needs to keep ``alpha``."""
        return max(0, rows_needed(self.alpha) - self.rows)

    @property
    def on_audit_rows(self) -> bool:
        """Whether audit rows set the threshold, in place of held-out rows."""
        return self.audits >= rows_needed(self.alpha)

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
    model: IncrementalClassifier,
    X: NDArray[Any] | None,
    labels: Sequence[Any],
    trained: Sequence[bool] = (),
    learnt: tuple[NDArray[Any], Sequence[Any]] | None = None,
    stream: FloatArray | None = None,
    sampled: Collection[Any] = (),
) -> Calibration:
    """Sets the threshold on audit rows, which are a random sample of the stream, and says what that is worth.

    Audit rows tell which share of the stream is of known classes at each novelty, and the rows of the stream without a
    label how often that novelty occurs. Where these are not given, the threshold is set on audit rows of known classes
    alone. Rows of groups that were named cannot keep the rate: they were rejected first, so they are the unusual ones
    of their class. They only stand in until there are audit rows, and nothing is promised till then.

    Args:
        model: The classifier, with the threshold of its held-out rows; its ``promise_`` is replaced.
        X: Audit rows; None if there are none.
        labels: Their classes, known to the model or not.
        trained: Whether each row has trained the model; it then counts as if it had not. By default none has.
        learnt: Training rows of the classes that came from groups, and their classes.
        stream: Novelty of rows of the stream, for a model that has not seen them.
        sampled: Classes that were taught by random samples. Held-out rows are drawn from all rows of a sample, so they
            speak for each of its classes, though by chance one may have none.
    """
    uncovered = from_groups(model, sampled)
    answers, seen = np.asarray(labels), np.asarray(trained or [False] * len(labels))
    known = np.isin(answers, model.classes_) if X is not None else np.empty(0, bool)
    audits, needed = int(known.sum()), rows_needed(model.alpha)
    if audits >= needed:
        # A random sample of the stream speaks for the classes that lessons held no rows of.
        model.uncovered_ = []
    if model.rule == "own" or not (len(uncovered) or audits >= needed):
        return _said(model, audits, 0)
    if X is not None and stream is not None and audits:
        return _on_the_stream(model, unseen_novelty(model, X, answers, seen), known, stream, len(uncovered))
    novelty = unseen_novelty(model, X[known], answers[known], seen[known]) if X is not None else np.empty(0)
    if audits >= needed:
        _set(model, novelty)
        return _said(model, audits, 0)
    old = ~np.isin(answers[known], uncovered)
    return _on_stand_ins(model, novelty, old, _left_out(model, learnt), len(uncovered))


def from_groups(model: IncrementalClassifier, sampled: Collection[Any]) -> NDArray[Any]:
    """Classes that were learnt from groups alone."""
    known = np.isin(model.classes_, model.held_out_labels_)
    return model.classes_[~known & ~np.isin(model.classes_, list(sampled))]


def _on_the_stream(
    model: IncrementalClassifier, novelty: FloatArray, known: NDArray[np.bool_], stream: FloatArray, uncovered: int
) -> Calibration:
    """Sets the threshold on the novelty of known rows of the stream, as audit rows tell them from unknown ones."""
    found, audits = known_novelty(stream, novelty, known, alpha=model.alpha), int(known.sum())
    _set(model, found.values)
    enough = audits >= rows_needed(model.alpha)
    return Calibration(model.alpha, audits, audits, 0 if enough else uncovered, found.rate, estimated=True)


def _on_stand_ins(
    model: IncrementalClassifier, novelty: FloatArray, taught: NDArray[np.bool_], new: FloatArray, uncovered: int
) -> Calibration:
    """Sets the threshold on the few audit rows, held-out rows and rows of groups; nothing is promised."""
    audits = len(taught)
    new = np.concatenate([novelty[~taught], new])
    if not len(new):
        return _said(model, audits, uncovered)
    share = ((~taught).sum() + 1) / (audits + 2)
    old = np.concatenate([novelty[taught], model.calibration_novelty_])
    _set(model, order_statistics(new, round(_ENOUGH * share)), order_statistics(old, round(_ENOUGH * (1 - share))))
    return _said(model, audits, uncovered, rows=max(audits, 1))


def _set(model: IncrementalClassifier, *novelty: FloatArray) -> None:
    with warnings.catch_warnings():
        # Too few rows are reported in the status, every time, not only once as a warning.
        warnings.simplefilter("ignore", CalibrationWarning)
        model.promise_ = Promise(alpha=model.alpha).fit(np.concatenate(novelty))


def _left_out(model: Any, learnt: tuple[NDArray[Any], Sequence[Any]] | None) -> FloatArray:
    """The novelty of training rows as if they had not trained, if the model can tell."""
    return model.left_out_novelty(*learnt) if learnt is not None and leaves_out(model) else np.empty(0)


def leaves_out(model: IncrementalClassifier) -> bool:
    """Whether the model can score a training row as if it had not seen it; audit rows then train as well."""
    return hasattr(model, "left_out_novelty")


def forgets_rows(model: IncrementalClassifier) -> bool:
    """Whether rows that the model has learnt can be taken out again, to learn them as another class."""
    return hasattr(model, "remove_rows")


def unseen_novelty(model: Any, X: NDArray[Any], labels: NDArray[Any], trained: NDArray[np.bool_]) -> FloatArray:
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


def measured(alarms: int, rows: int) -> AuditedRate | None:
    """The false-alarm rate on audit rows that set no threshold, with the 95 % interval of Clopper and Pearson.

    Example:
        >>> print(measured(7, 160))
        4.4% [1.8%, 8.8%] on 160 audit rows of known classes
    """
    if not rows:
        return None
    low = float(beta.ppf(0.025, alarms, rows - alarms + 1)) if alarms else 0.0
    high = float(beta.ppf(0.975, alarms + 1, rows - alarms)) if alarms < rows else 1.0
    return AuditedRate(alarms / rows, low, high, rows)


def _said(model: IncrementalClassifier, audits: int, uncovered: int, rows: int | None = None) -> Calibration:
    """What the threshold is worth; repeated rows count once."""
    promise, rows = model.promise_, len(model.calibration_novelty_) if rows is None else rows
    if model.rule == "own" or not rows:
        return Calibration(model.alpha, rows, audits, uncovered, None)
    above = round(rows * float(promise.novel(promise.calibration_novelty_).mean()))
    low, high = (float(beta.ppf(end, above + 1, max(rows - above, 1))) for end in (0.025, 0.975))
    return Calibration(model.alpha, rows, audits, uncovered, ((above + 1) / (rows + 1), low, high))
