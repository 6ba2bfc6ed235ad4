"""A budget of alerts, as an alternative to a false-alarm rate."""

from dataclasses import dataclass

from offmap.parameters import Count, Fraction, Positive, require


@dataclass(frozen=True)
class Budget:
    """A number of alerts per number of rows, counted while all rows are normal.

    A budget is a false-alarm rate as those who work through the alerts put it: ``Budget(50, per=1000)`` is the rate
    0.05. It is the number to expect on average while all rows are normal; alerts of novel rows come on top of it. Where
    the number of alerts must never be exceeded, take ``Verdict.top(k)``.

    Args:
        alerts: Number of alerts.
        per: Number of rows that may raise them.

    Example:
        >>> Budget(50, per=1000).rate
        0.05
    """

    alerts: float
    per: int = 1000

    def __post_init__(self) -> None:
        require("alerts", self.alerts, Positive)
        require("per", self.per, Count)
        if self.alerts >= self.per:
            raise ValueError(f"a budget must be fewer alerts than rows; got {self.alerts:g} per {self.per}")

    @property
    def rate(self) -> float:
        """Alerts per row."""
        return self.alerts / self.per


def chosen_rate(alpha: float | None, budget: "Budget | float | None") -> float:
    """The false-alarm rate that a user states as ``alpha`` or as ``budget``; exactly one of them.

    Example:
        >>> chosen_rate(None, Budget(2, per=100)), chosen_rate(0.1, None)
        (0.02, 0.1)
    """
    if (alpha is None) == (budget is None):
        raise ValueError("give either alpha or budget")
    if isinstance(budget, Budget):
        return budget.rate
    name, rate = ("alpha", alpha) if budget is None else ("budget", budget)
    require(name, rate, Fraction)
    assert rate is not None
    return float(rate)
