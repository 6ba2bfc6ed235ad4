"""The result of an estimate, with its interval."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from offmap.dependence.estimator import Bound

Unit = Literal["nats", "bits"]


@dataclass(frozen=True)
class Estimate:
    """An estimated mutual information or total correlation, with a 95 % interval.

    Attributes:
        value: The estimate. Where nothing is shared it may be slightly negative.
        interval: 95 % interval of the value: from random halves of the rows for nearest-neighbour estimators, from a
            bootstrap over rows for others. It covers sampling noise, not the bias of the estimator.
        estimator: Name of the estimator.
        bound: "lower" or "upper" if the estimator is biased to that side of the truth, or None.
        unit: "nats" or "bits".
        rows: Number of rows that the value is averaged over.
        reason: Why "auto" chose this estimator; empty if it was named by the caller.

    Example:
        >>> estimate = Estimate(0.5, (0.4, 0.6), "ksg", None, "nats", 1000, "")
        >>> print(estimate), float(estimate)
        0.500 nats (0.400 to 0.600) by ksg
        (None, 0.5)
    """

    value: float
    interval: tuple[float, float]
    estimator: str
    bound: Bound | None
    unit: Unit
    rows: int
    reason: str

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        side = {"lower": ", a lower bound", "upper": ", an upper bound", None: ""}[self.bound]
        why = f" ({self.reason})" if self.reason else ""
        low, high = self.interval
        return f"{self.value:.3f} {self.unit} ({low:.3f} to {high:.3f}) by {self.estimator}{side}{why}"

    def to_unit(self, unit: Unit) -> "Estimate":
        """Converts the value and the interval to "nats" or "bits"."""
        if unit not in ("nats", "bits"):
            raise ValueError(f"unit must be 'nats' or 'bits'; got {unit!r}")
        if unit == self.unit:
            return self
        factor = math.log(2) if unit == "nats" else 1 / math.log(2)
        low, high = self.interval
        return replace(self, value=self.value * factor, interval=(low * factor, high * factor), unit=unit)
