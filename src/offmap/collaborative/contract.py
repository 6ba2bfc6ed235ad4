"""What a user can ask of a model of many entities: the questions of every model, about a row and its entity."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offmap.arrays import FloatArray, Rows
from offmap.calibration.contract import PromisedModel
from offmap.calibration.promise import Promise
from offmap.calibration.suggestion import SuggestedRate
from offmap.collaborative.ids import Places, as_given, check_ids
from offmap.random_state import RandomState
from offmap.verdict import Verdict

Pairs = tuple[Rows, Places, Places]


class EntityModel(PromisedModel):
    """A model whose answers are about pairs of a row and an entity; write ``_pairs`` and the two scores."""

    @abstractmethod
    def _pairs(self, X: Any, entities: ArrayLike, rows: ArrayLike | None) -> Pairs:
        """Validated rows, and for each pair its row and the place of its entity."""

    @abstractmethod
    def _novelty_of(self, X: Rows, index: Places, places: Places) -> FloatArray:
        """Novelty of pairs on the scale that all entities share."""

    @abstractmethod
    def _raw_novelty_of(self, X: Rows, index: Places, places: Places) -> FloatArray:
        """Novelty of pairs as the method scores them."""

    def novelty(self, X: Any, entities: ArrayLike, *, rows: ArrayLike | None = None) -> FloatArray:  # type: ignore[override] # the entity is part of the question
        """How novel each row is for its entity; higher is more novel, and above ``threshold_`` it is flagged.

        The raw score is standardised by the mean and variance of the scores of the entity's own rows, since a
        score that is high for one entity may be normal for another. With ``calibration=0`` it is the raw score.

        Args:
            X: Rows or images.
            entities: Id of the entity of each row.
            rows: Row of ``X`` that each id in ``entities`` refers to, if not the one in its place.
        """
        return self._novelty_of(*self._pairs(X, entities, rows))

    def raw_novelty(self, X: Any, entities: ArrayLike, *, rows: ArrayLike | None = None) -> FloatArray:
        """Minus the familiarity of each row to its entity, such as a log ratio or a log density.

        It ranks the rows of one entity as ``novelty`` does, but differs in level and spread from entity to entity.
        """
        return self._raw_novelty_of(*self._pairs(X, entities, rows))

    def score_samples(self, X: Any, entities: ArrayLike, *, rows: ArrayLike | None = None) -> FloatArray:
        """Minus the novelty: higher is more normal, as scikit-learn has it."""
        return -self.novelty(X, entities, rows=rows)

    def decision_function(self, X: Any, entities: ArrayLike, *, rows: ArrayLike | None = None) -> FloatArray:
        """How far below the threshold each row lies: negative for novel rows."""
        novelty = self.novelty(X, entities, rows=rows)
        return self._promise("decision_function").threshold_ - novelty

    def predict(self, X: Any, entities: ArrayLike, *, rows: ArrayLike | None = None) -> NDArray[np.int64]:
        """+1 for rows that are normal for their entity, -1 for novel ones."""
        novelty = self.novelty(X, entities, rows=rows)
        return np.where(self._promise("predict").novel(novelty), -1, 1)

    def p_value(  # type: ignore[override] # the entity is part of the question
        self, X: Any, entities: ArrayLike, *, rows: ArrayLike | None = None, random_ties: RandomState = None
    ) -> FloatArray:
        r"""The conformal p-value of each row under "this is a row like those of its entity"; small is novel.

        A row like the fitted ones gets a p-value of at most $\alpha$ with a probability of at most $\alpha$. This
        promise holds over the rows of all entities together that were fitted with two rows or more. Since scores are
        standardised per entity, it nearly holds for each entity as well. Entities with fewer than about ten rows, above
        all those added after the fit, are not known well enough for that: more than $\alpha$ of their own rows are
        flagged.
        """
        novelty = self.novelty(X, entities, rows=rows)
        return self._promise("p_value").p_value(novelty, random_ties=random_ties)

    def select(  # type: ignore[override] # the entity is part of the question
        self, X: Any, entities: ArrayLike, *, rows: ArrayLike | None = None, fdr: float = 0.1, window: int = 500
    ) -> NDArray[np.bool_]:
        """Selects rows to look at, so that on average at most a share ``fdr`` of the selected ones are false alarms.

        Args:
            X: Rows or images.
            entities: Id of the entity of each row.
            rows: Row of ``X`` that each id in ``entities`` refers to, if not the one in its place.
            fdr: Share of false alarms among the selected rows.
            window: Consecutive rows that are judged together.
        """
        return self._selected(self.p_value(X, entities, rows=rows), fdr, window)

    def suggest_alpha(  # type: ignore[override] # the entity is part of the question
        self, X: Any, entities: ArrayLike, *, rows: ArrayLike | None = None, false_alarm_cost: float = 1.0
    ) -> SuggestedRate:
        """The false-alarm rate with the least expected cost on unlabelled rows, for ``at(alpha=…)``.

        If no row seems to be novel, it is the smallest rate that n held-out rows can keep, 1 / (n + 1).

        Args:
            X: Rows or images as they come in use, normal and novel ones, a hundred or more.
            entities: Id of the entity of each row.
            rows: Row of ``X`` that each id in ``entities`` refers to, if not the one in its place.
            false_alarm_cost: What a false alarm costs, if a novel row that is missed costs 1.
        """
        plain = self._without_confidence()
        return plain._suggested(plain.p_value(X, entities, rows=rows), false_alarm_cost)

    def assess(self, X: Any, entities: ArrayLike, *, rows: ArrayLike | None = None) -> Verdict:  # type: ignore[override] # the entity is part of the question
        """Novelty, p-value and decision of each row for its entity, computed in one pass."""
        novelty = self.novelty(X, entities, rows=rows)
        promise = self._promise("assess")
        return Verdict(
            novelty=novelty,
            novel=promise.novel(novelty),
            p_value=promise.p_value(novelty),
            entity=as_given(check_ids(entities)),
        )

    def recalibrate(self, X: Any, entities: ArrayLike, *, rows: ArrayLike | None = None) -> Self:  # type: ignore[override] # the entity is part of the question
        """The same fitted model with threshold and p-values set by other normal rows, which it must **not** have seen.

        Args:
            X: Rows or images.
            entities: Id of the entity of each row.
            rows: Row of ``X`` that each id in ``entities`` refers to, if not the one in its place.
        """
        novelty = self.novelty(X, entities, rows=rows)
        model = self._with_promise(self._new_promise().fit(novelty), alpha=self.alpha)
        # Rows are counted anew from here on.
        model.__dict__.pop("_growth", None)
        return model

    def _promise(self, asked: str) -> Promise:
        if not self.promise_.has_rows:
            raise ValueError(
                f"{asked} needs held-out rows; fit with calibration above 0, and entities of 2 rows or more "
                "(raw_novelty ranks the rows of an entity without)"
            )
        return self.promise_
