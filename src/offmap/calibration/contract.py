"""What a user can ask of any model that has a novelty and a promise.

``Detector`` and ``OpenSetClassifier`` (Offmap's own methods) answer these questions, and so do ``Calibrated`` and
``Guarded`` (any other model).
"""

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from offmap.arrays import FloatArray
from offmap.calibration.budget import Budget, chosen_rate
from offmap.calibration.file_checks import check_promises
from offmap.calibration.foreign import require_spread
from offmap.calibration.promise import Promise, RateInterval
from offmap.calibration.selection import select_rows, warn_if_blind
from offmap.calibration.statement import in_words
from offmap.calibration.suggestion import SuggestedRate, suggest_rate
from offmap.calibration.surprise import surprise
from offmap.parameters import Fraction
from offmap.random_state import RandomState
from offmap.verdict import Verdict


def forget_fit(model: Any) -> None:
    """Removes all that a fit left: one that fails half-way, or that fits other parts, must keep none of the last."""
    for name in [name for name in vars(model) if name.endswith("_")]:
        delattr(model, name)


class PromisedModel(ABC):
    """A model whose decisions come from a ``Promise``, kept in ``promise_`` once it is fitted.

    With ``calibration="cv"`` it consists of ``members_``, one model per fold, each with held-out rows of its own.
    """

    promise_: Promise
    # As the parameters of the models are annotated: the annotations are their checks.
    alpha: Fraction
    confidence: Fraction | None

    @abstractmethod
    def novelty(self, X: Any) -> FloatArray:
        """How novel each row is: higher is more novel, and above ``threshold_`` it is flagged."""

    @abstractmethod
    def assess(self, X: Any) -> Verdict:
        """Everything the model says of each row, computed in one pass."""

    def p_value(self, X: Any, *, random_ties: RandomState = None) -> FloatArray:
        """The conformal p-value of each row under "this is like the training data"; small is novel.

        Args:
            X: The rows.
            random_ties: Seed that breaks ties with held-out rows at random, for discrete scores.
        """
        novelty = self.novelty(X)
        return self.promise_.p_value(novelty, random_ties=random_ties)

    def select(self, X: Any, *, fdr: float = 0.1, window: int = 500) -> NDArray[np.bool_]:
        """Selects rows to look at, so that on average at most a share ``fdr`` of the selected ones are false alarms.

        Args:
            X: The rows, in the order in which they came.
            fdr: Share of false alarms among the selected rows.
            window: Consecutive rows that are judged together, by the procedure of Benjamini and Hochberg.
        """
        return self._selected(self.p_value(X), fdr, window)

    def _selected(self, p_value: FloatArray, fdr: float, window: int) -> NDArray[np.bool_]:
        selected = select_rows(p_value, fdr, window)
        smallest, n = float(self.promise_.p_value([np.inf])[0]), len(self.calibration_novelty_)
        warn_if_blind(smallest, n, fdr, min(window, len(p_value)))
        return selected

    def suggest_alpha(self, X: Any, *, false_alarm_cost: float = 1.0) -> SuggestedRate:
        """The false-alarm rate with the least expected cost on unlabelled rows, for ``at(alpha=…)``.

        The more rows are novel, the more false alarms finding them is worth. The p-values tell how many are. If none
        seems to be, it is the smallest rate that n held-out rows can keep, 1 / (n + 1).

        Args:
            X: Rows as they come in use, normal and novel ones, a hundred or more.
            false_alarm_cost: What a false alarm costs, if a novel row that is missed costs 1.
        """
        plain = self._without_confidence()
        return plain._suggested(plain.p_value(X), false_alarm_cost)

    def _suggested(self, p_value: FloatArray, false_alarm_cost: float) -> SuggestedRate:
        smallest = 1 / (len(self.calibration_novelty_) + 1)
        return suggest_rate(p_value, false_alarm_cost=false_alarm_cost, smallest=smallest)

    def _without_confidence(self) -> Self:
        """This model with p-values that are spread evenly for normal rows: a confidence enlarges them."""
        check_is_fitted(self, "promise_")
        self.promise_.require_rows("suggest_alpha")
        return self if self.confidence is None else self._with_promise(self.promise_.plain(), self.alpha)

    @property
    def threshold_(self) -> float:
        """The novelty above which a row is flagged."""
        return self.promise_.threshold_

    @property
    def calibration_novelty_(self) -> FloatArray:
        """Novelty of the held-out rows, in ascending order."""
        return self.promise_.calibration_novelty_

    @property
    def promised_rate(self) -> float | None:
        """The false-alarm rate that the threshold keeps; None if it is the method's own or nothing was held out."""
        check_is_fitted(self, "promise_")
        return self.promise_.rate

    @property
    def false_alarm_rate(self) -> RateInterval | None:
        """The false-alarm rate to expect of this model, with its 95 % interval; None if nothing was held out."""
        check_is_fitted(self, "promise_")
        return self.promise_.false_alarm_rate

    def at(self, *, alpha: float | None = None, budget: Budget | float | None = None) -> Self:
        """The same fitted model at another rate of false alarms, from the scores of the held-out rows that it keeps.

        Nothing is fitted again, and the copy shares everything but the threshold with this model. A threshold of the
        method's own (``rule="own"``) becomes a calibrated one.

        Args:
            alpha: False-alarm rate.
            budget: Alerts per row instead, such as ``Budget(50, per=1000)`` or 0.05.
        """
        check_is_fitted(self, "promise_")
        rate = chosen_rate(alpha, budget)
        return self._with_promise(self.promise_.at(rate), alpha=rate)

    def recalibrate(self, X: Any) -> Self:
        """The same fitted model with threshold and p-values set by other normal rows, which it must **not** have seen.

        Take recent rows that were found to be normal, after the source has changed or to get more of them than were
        held out.
        """
        novelty = self.novelty(X)
        require_calibrating(novelty)
        model = self._with_promise(self._new_promise().fit(novelty), alpha=self.alpha)
        # None of these rows was left out.
        model.__dict__.pop("trimmed_", None)
        return model

    @property
    def promise_in_words(self) -> str:
        """What is promised of this model, for whom, and what is not."""
        check_is_fitted(self, "promise_")
        return in_words(self)

    def _new_promise(self) -> Promise:
        return Promise(alpha=self.alpha, confidence=self.confidence)

    def _check_promises(self) -> None:
        """Raises a ``ValueError`` unless the promises are ones that a fit leaves; ``load`` calls it."""
        check_promises(self)

    def _check_answers(self) -> None:
        """Raises an error unless each question can be answered of the rows that a file holds; ``load`` calls it."""
        verdict = self.assess((self._members() or (self,))[0].fingerprint_.rows)
        _ = verdict.p_value, self.false_alarm_rate, self.promised_rate, self.promise_in_words

    def _members(self) -> tuple[Any, ...]:
        """The models of the folds; none if one part of the rows was held out."""
        return getattr(self, "members_", ())

    def _surprise(self, novelties: list[FloatArray]) -> FloatArray:
        """Novelty on the scale that the models of the folds share."""
        return surprise([member.calibration_novelty_ for member in self._members()], novelties)

    def _with_promise(self, promise: Promise, alpha: float) -> Self:
        """A copy that shares everything with this model but the promise."""
        model = copy(self)
        model.promise_, model.alpha = promise, alpha
        if hasattr(model, "rule"):
            model.rule = "calibrated"
        return model

    def _p_value_or_none(self, novelty: FloatArray) -> FloatArray | None:
        return self.promise_.p_value(novelty) if self.promise_.has_rows else None


class PromisedDetector(OutlierMixin, PromisedModel):
    """A scikit-learn outlier detector with ``novelty``, ``p_value`` and ``assess``; write ``novelty`` and ``fit``."""

    @property
    def offset_(self) -> float:
        """Minus ``threshold_``, as scikit-learn has it."""
        return -self.threshold_

    def assess(self, X: Any) -> Verdict:
        """Novelty, p-value and decision of each row, computed in one pass."""
        novelty = self.novelty(X)
        p_value = self._p_value_or_none(novelty)
        return Verdict(novelty=novelty, novel=self.promise_.novel(novelty), p_value=p_value)

    def score_samples(self, X: Any) -> FloatArray:
        """Minus the novelty: higher is more normal, as scikit-learn has it."""
        return -self.novelty(X)

    def decision_function(self, X: Any) -> FloatArray:
        """How far below the threshold each row lies: negative for novel rows."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """+1 for normal rows, -1 for novel ones."""
        novelty = self.novelty(X)
        return np.where(self.promise_.novel(novelty), -1, 1)


def require_calibrating(novelty: FloatArray) -> None:
    """Refuses rows from which no threshold can be set: none, or rows that all score alike."""
    if not len(novelty):
        raise ValueError("X has 0 samples; recalibrate needs at least 1")
    require_spread(novelty)
