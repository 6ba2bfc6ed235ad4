"""What a user can ask of any model that has a novelty and a promise.

``Detector`` and ``OpenSetClassifier`` (Offmap's own methods) answer these questions, and so do ``Calibrated`` and
``Guarded`` (any other model).
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from offmap.arrays import FloatArray
from offmap.calibration.promise import Promise, RateInterval
from offmap.labels import with_unknown
from offmap.verdict import Verdict


class PromisedModel(ABC):
    """A model whose decisions come from a ``Promise``, kept in ``promise_`` once it is fitted."""

    promise_: Promise

    @abstractmethod
    def novelty(self, X: Any) -> FloatArray:
        """How novel each row is: higher is more novel, and above ``threshold_`` it is flagged."""

    @abstractmethod
    def assess(self, X: Any) -> Verdict:
        """Everything the model says of each row, computed in one pass."""

    def p_value(self, X: Any) -> FloatArray:
        """The conformal p-value of each row under "this is like the training data"; small is novel."""
        novelty = self.novelty(X)
        return self.promise_.p_value(novelty)

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
    """A classifier that names a known class or answers ``unknown_label_``; write ``_classified`` and ``fit``."""

    classes_: NDArray[Any]
    unknown_label_: int | str

    @abstractmethod
    def _classified(self, X: Any) -> Classification:
        """Probabilities and novelty of each row."""

    def assess(self, X: Any) -> Verdict:
        """Novelty, p-value, decision, label, closest class and probabilities of each row, computed in one pass."""
        proba, novelty = self._classified(X)
        novel = self.promise_.novel(novelty)
        closest = self.classes_[proba.argmax(axis=1)]
        return Verdict(
            novelty=novelty,
            novel=novel,
            p_value=self._p_value_or_none(novelty),
            label=with_unknown(closest, novel, self.unknown_label_),
            closest=closest,
            proba=proba,
        )

    def novelty(self, X: Any) -> FloatArray:
        """How novel each row is: higher is more novel, and above ``threshold_`` it is rejected."""
        return self._classified(X).novelty

    def predict(self, X: Any) -> NDArray[Any]:
        """The known label of each row, or ``unknown_label_`` if it is novel."""
        label = self.assess(X).label
        assert label is not None
        return label

    def predict_closed(self, X: Any) -> NDArray[Any]:
        """The most likely known label of each row, whether it is novel or not."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the known classes, given that the row is of one of them; columns as ``classes_``."""
        return self._classified(X).proba
