"""What a user can ask of any model that has a novelty and a promise.

``Detector`` and ``OpenSetClassifier`` (Offmap's own methods) answer these questions, and so do ``Calibrated`` and
``Guarded`` (any other model).
"""

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from offmap.arrays import FloatArray
from offmap.calibration.blocks import in_blocks
from offmap.calibration.budget import Budget, chosen_rate
from offmap.calibration.file_checks import check_promises
from offmap.calibration.foreign import require_spread
from offmap.calibration.mondrian import ClassPromise
from offmap.calibration.promise import Promise, RateInterval
from offmap.calibration.selection import select_rows, warn_if_blind
from offmap.calibration.statement import in_words
from offmap.calibration.suggestion import SuggestedRate, suggest_rate
from offmap.calibration.surprise import surprise
from offmap.labels import with_unknown
from offmap.parameters import Fraction
from offmap.random_state import RandomState
from offmap.verdict import Verdict


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

        The more rows are novel, the more false alarms finding them is worth. The p-values tell how many are.

        Args:
            X: Rows as they come in use, normal and novel ones, a hundred or more.
            false_alarm_cost: What a false alarm costs, if a novel row that is missed costs 1.
        """
        return suggest_rate(self._without_confidence().p_value(X), false_alarm_cost=false_alarm_cost)

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
        _require_calibrating(novelty)
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


class Classification(NamedTuple):
    """What an open-set classifier makes of each row: ``proba`` over the known classes, and ``novelty``."""

    proba: Any
    novelty: Any


class PromisedClassifier(ClassifierMixin, PromisedModel):
    """A classifier that names a known class or answers ``unknown_label_``; write ``_classified`` and ``fit``.

    With ``by_class``, ``class_promise_`` decides: a row is compared with held-out rows of its predicted class, or of
    each class.
    """

    classes_: NDArray[Any]
    unknown_label_: int | str

    @abstractmethod
    def _classified(self, X: Any) -> Classification:
        """Probabilities and novelty of each row."""

    def assess(self, X: Any) -> Verdict:
        """Novelty, p-value, decision, label, closest class and probabilities of each row, computed in one pass."""
        evidence = self._evidence(X)
        proba, novelty = self._combined(evidence)
        p_value, novel = self._decided(evidence, novelty)
        closest = self.classes_[proba.argmax(axis=1)]
        return Verdict(
            novelty=novelty,
            novel=novel,
            p_value=p_value,
            label=with_unknown(closest, novel, self.unknown_label_),
            closest=closest,
            proba=proba,
        )

    def novelty(self, X: Any) -> FloatArray:
        """How novel each row is: higher is more novel, and above ``threshold_`` it is rejected.

        With ``by_class`` each class has a threshold of its own, and ``threshold_`` is that of all rows together.
        """
        check_is_fitted(self, "promise_")
        return in_blocks(lambda rows: self._combined(self._evidence(rows)).novelty, X, len(self.classes_))

    def p_value(self, X: Any, *, random_ties: RandomState = None) -> FloatArray:
        """The conformal p-value of each row under "this is of a known class"; small is novel.

        Args:
            X: The rows.
            random_ties: Seed that breaks ties with held-out rows at random, for discrete scores.
        """
        evidence = self._evidence(X)
        if self._class_promise() is None:
            return self.promise_.p_value(self._combined(evidence).novelty, random_ties=random_ties)
        if random_ties is not None:
            raise ValueError("random_ties cannot be combined with by_class")
        return self._p_value_by_class(evidence)

    def predict_set(self, X: Any) -> list[NDArray[Any]]:
        """All known classes that each row may be of: those with a p-value above ``alpha``. With none, all reject it.

        The true class of a row is missing with a probability of at most ``alpha``, for each known class. A row with
        several classes left may still be novel to ``assess``, which does not need all of them to reject it. It needs
        ``by_class``, either of the two.
        """
        check_is_fitted(self, "promise_")
        if self._class_promise() is None:
            raise ValueError('predict_set needs p-values by class; fit with by_class="predicted" or "actual"')
        kept = self._class_p_values(self._evidence(X)) > self.alpha * (1 + 1e-12)
        return [self.classes_[row] for row in kept]

    def recalibrate(self, X: Any, y: Any = None) -> Self:
        """The same fitted model with threshold and p-values set by other rows, which it must **not** have seen.

        Args:
            X: Rows of known classes.
            y: Their classes, which ``by_class`` needs.
        """
        combined = self._combined(self._evidence(X))
        _require_calibrating(combined.novelty)
        model = self._with_promise(self._new_promise().fit(combined.novelty), alpha=self.alpha)
        if (promise := self._class_promise()) is not None:
            model.class_promise_ = ClassPromise(alpha=self.alpha, by=promise.by).fit(
                *combined, self._codes(y, len(combined.novelty))
            )
        return model

    def predict(self, X: Any) -> NDArray[Any]:
        """The known label of each row, or ``unknown_label_`` if it is novel."""
        check_is_fitted(self, "promise_")
        return in_blocks(lambda rows: np.asarray(self.assess(rows).label), X, len(self.classes_))

    def predict_closed(self, X: Any) -> NDArray[Any]:
        """The most likely known label of each row, whether it is novel or not."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the known classes, given that the row is of one of them; columns as ``classes_``."""
        return self._combined(self._evidence(X)).proba

    def _evidence(self, X: Any) -> list[Classification]:
        """What each model of the folds makes of the rows; one entry if there are no folds."""
        check_is_fitted(self, "promise_")
        return [member._classified(X) for member in self._members()] or [self._classified(X)]

    def _combined(self, evidence: list[Classification]) -> Classification:
        if not self._members():
            return evidence[0]
        proba = np.mean([each.proba for each in evidence], axis=0)
        return Classification(proba, self._surprise([each.novelty for each in evidence]))

    def _decided(
        self, evidence: list[Classification], novelty: FloatArray
    ) -> tuple[FloatArray | None, NDArray[np.bool_]]:
        if self._class_promise() is None:
            return self._p_value_or_none(novelty), self.promise_.novel(novelty)
        p_value = self._p_value_by_class(evidence)
        return p_value, p_value <= self.alpha * (1 + 1e-12)

    def _check_answers(self) -> None:
        super()._check_answers()
        if self._class_promise() is not None:
            self.predict_set((self._members() or (self,))[0].fingerprint_.rows)

    def _class_promise(self) -> ClassPromise | None:
        return getattr(self, "class_promise_", None)

    def _class_p_values(self, evidence: list[Classification]) -> FloatArray:
        promise = self._class_promise()
        assert promise is not None
        return promise.p_values(self._asked(promise, evidence))

    def _p_value_by_class(self, evidence: list[Classification]) -> FloatArray:
        promise = self._class_promise()
        assert promise is not None
        return promise.p_value(self._asked(promise, evidence))

    def _asked(self, promise: ClassPromise, evidence: list[Classification]) -> list[Classification]:
        """The evidence of each model that held rows out; rows that came later were held out of all folds."""
        return evidence if promise.members == len(evidence) else [self._combined(evidence)]

    def _codes(self, y: Any, rows: int) -> NDArray[np.int64]:
        """The codes of labels of known classes, one per row."""
        labels = np.asarray(y)
        if labels.shape != (rows,):
            found = "None" if y is None else f"an array of shape {labels.shape}"
            raise ValueError(f"y must hold the known class of each of the {rows} rows, for by_class; got {found}")
        if len(strange := labels[~np.isin(labels, self.classes_)]):
            known = ", ".join(map(str, self.classes_[:10].tolist()))
            raise ValueError(
                f"y holds the label {strange[0]!s}, which is no known class: {known}; rows of other classes are novel, "
                "leave them out"
            )
        # The classes of a module's logits are in the order of its columns.
        order = np.argsort(self.classes_, kind="stable")
        return order[np.searchsorted(self.classes_, labels, sorter=order)]

    def _with_promise(self, promise: Promise, alpha: float) -> Self:
        model = super()._with_promise(promise, alpha)
        if (by_class := self._class_promise()) is not None:
            model.class_promise_ = by_class.at(alpha)
        return model

    def _join_class_promises(self) -> None:
        """By class, the held-out rows of all folds together."""
        self.class_promise_ = ClassPromise.joined([member.class_promise_ for member in self._members()], self.alpha)


def _require_calibrating(novelty: FloatArray) -> None:
    """Refuses rows from which no threshold can be set: none, or rows that all score alike."""
    if not len(novelty):
        raise ValueError("X has 0 samples; recalibrate needs at least 1")
    require_spread(novelty)
