"""What a user can ask of any classifier that has a novelty and a promise: a known class, or none of them."""

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from offmap.arrays import FloatArray
from offmap.calibration.blocks import in_blocks
from offmap.calibration.contract import PromisedModel, require_calibrating
from offmap.calibration.mondrian import ClassPromise
from offmap.calibration.promise import Promise
from offmap.labels import as_labels, require_type_of, with_unknown
from offmap.random_state import RandomState
from offmap.verdict import Verdict


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
    uncovered_: list[str]

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
            y: Their classes, which ``by_class`` needs. They are checked: a row of another class is novel itself.
        """
        combined = self._combined(self._evidence(X))
        require_calibrating(combined.novelty)
        promise = self._class_promise()
        codes = self._codes(y, len(combined.novelty)) if promise is not None or y is not None else None
        model = self._with_promise(self._new_promise().fit(combined.novelty), alpha=self.alpha)
        # All of these rows calibrate, also those of classes of which none could be held out.
        model.uncovered_ = []
        if promise is not None and codes is not None:
            model.class_promise_ = ClassPromise(alpha=self.alpha, by=promise.by).fit(*combined, codes)
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
            found = "None, and by_class needs them" if y is None else f"an array of shape {labels.shape}"
            raise ValueError(f"y must hold the known class of each of the {rows} rows; got {found}")
        labels = as_labels(labels)
        require_type_of(self.classes_, labels)
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
