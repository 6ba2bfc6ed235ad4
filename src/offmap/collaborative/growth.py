"""Entities that have taken in many more rows than they had when the threshold was set."""

import numpy as np
from numpy.typing import NDArray

from offmap.calibration.conformal import CalibrationWarning
from offmap.errors import warn_caller


class Growth:
    """Warns once when an entity has a tenth more rows than at the time of calibration.

    Its level is then that of other rows than those that set the threshold: fewer rows are flagged than promised.

    Args:
        counts: Rows of each entity at the time of calibration.
    """

    def __init__(self, counts: NDArray[np.int64]) -> None:
        self.counts = counts

    def forget(self, places: NDArray[np.int64]) -> None:
        """Drops the entities at ``places``; those that came after the calibration are not here."""
        self.counts = np.delete(self.counts, places[places < len(self.counts)])

    def check(self, counts: NDArray[np.int64]) -> None:
        """Warns if one of the entities has grown by a tenth; ``counts`` may have later ones at its end."""
        if (10 * counts[: len(self.counts)] >= 11 * self.counts).any():
            self.counts = self.counts[:0]
            warn_caller(
                "entities have a tenth more rows than when the threshold was set, which changes how their rows score: "
                "the false-alarm rate differs from alpha; call recalibrate(X, entities) with rows that were not "
                "learnt",
                CalibrationWarning,
            )
