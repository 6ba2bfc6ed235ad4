"""The F1 of open-set answers for every threshold, when the share of open rows in use is not known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

OPEN = -1
SHARES = (0.25, 0.5, 0.75)
_GRID = 400


@dataclass(frozen=True)
class Scored:
    """Test rows with what a method says of them.

    Args:
        novelty: Novelty of each row.
        label: Code of the class that the row gets if it is not rejected.
        truth: Code of its class; ``OPEN`` for rows of classes that are not known.
    """

    novelty: Floats
    label: Codes
    truth: Codes

    def thresholds(self) -> Floats:
        """Returns thresholds from one that rejects nearly all rows to one that rejects none, ascending."""
        return np.unique(np.quantile(self.novelty, np.linspace(0, 1, _GRID)))

    def false_alarms(self, threshold: float) -> float:
        """Returns the share of known rows above the threshold."""
        return float(np.mean(self.novelty[self.truth != OPEN] > threshold))

    def f1(self, thresholds: Floats) -> Floats:
        """Returns the mean F1 of the known classes and the open one if rows above each threshold are rejected.

        It is the mean over ``SHARES``: open rows are weighted so that they make up each share of all rows.
        """
        is_open = self.truth == OPEN
        right = self._accepted(self.label == self.truth, thresholds)
        known, opened = self._accepted(~is_open, thresholds), self._accepted(is_open, thresholds)
        n_known, n_open, sizes = (~is_open).sum(), is_open.sum(), np.bincount(self.truth[~is_open])
        found = []
        for share in SHARES:
            weight = share / (1 - share) * n_known / n_open
            by_class = 2 * right / (known + weight * opened + sizes)
            rejected, wrongly = weight * (n_open - opened.sum(axis=1)), n_known - known.sum(axis=1)
            of_open = 2 * rejected / (rejected + wrongly + weight * n_open)
            found.append((by_class.sum(axis=1) + of_open) / (len(sizes) + 1))
        return np.mean(found, axis=0)

    def best_f1(self) -> float:
        """Returns the F1 at the threshold that is best in hindsight."""
        return float(self.f1(self.thresholds()).max())

    def _accepted(self, rows: NDArray[np.bool_], thresholds: Floats) -> Floats:
        """Number of ``rows`` accepted as each class, at each threshold."""
        order = np.argsort(self.novelty, kind="stable")
        kept = np.searchsorted(self.novelty[order], thresholds, side="right")
        classes = np.arange(self.truth.max() + 1)
        named = (self.label[order, None] == classes) & rows[order, None]
        return np.vstack([np.zeros(len(classes)), named.cumsum(axis=0)])[kept]
