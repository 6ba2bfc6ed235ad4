"""What plain rivals share: rows above a quantile of held-out rows are rejected."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from offmap.calibration import p_values


@dataclass(kw_only=True, eq=False, repr=False)
class HeldOutRate(BaseEstimator, ABC):
    """Answers the likeliest known label, or ``unknown_label_`` for rows above a quantile of held-out rows.

    Args:
        alpha: Share of the held-out rows that are rejected.
        random_state: Seed.

    Attributes:
        unknown_label_: What ``predict`` answers for rejected rows.
        threshold_: Rows with a novelty above it are rejected; infinite until ``recalibrate`` is given rows.
    """

    alpha: float = 0.12
    random_state: int | None = None

    @abstractmethod
    def novelty(self, X: Any) -> NDArray[np.float64]:
        """Returns the score of each row; higher is more novel."""

    @abstractmethod
    def predict_closed(self, X: Any) -> NDArray[Any]:
        """Returns the likeliest known label of each row."""

    def recalibrate(self, X: Any) -> Self:
        """Sets the threshold by rows of known classes that have not trained."""
        self._held_out = np.sort(self.novelty(X))
        self.threshold_ = float(np.quantile(self._held_out, 1 - self.alpha))
        return self

    def p_value(self, X: Any) -> NDArray[np.float64]:
        """Returns the conformal p-value of each row."""
        return p_values(self._held_out, self.novelty(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Returns the label of each row, or ``unknown_label_``."""
        return np.where(self.novelty(X) > self.threshold_, self.unknown_label_, self.predict_closed(X))
