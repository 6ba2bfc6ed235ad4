"""Another threshold for a fitted model, as the options of a command state it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offmap.workflow import Estimator

AUTO = "auto"


def rate_of(alpha: str | None) -> float | None:
    """The rate that an option states; None if it is not given, or left to the rows."""
    if alpha is None or alpha == AUTO:
        return None
    try:
        return float(alpha)
    except ValueError:
        raise ValueError(f"--alpha must be a rate between 0 and 1, or {AUTO!r}; got {alpha!r}") from None


def chosen(alpha: float | None, budget: str | None) -> float | None:
    """The false-alarm rate that is stated, as a rate or as a budget; None if neither is.

    Args:
        alpha: The rate.
        budget: Alerts per rows, as ``50/10000`` or ``0.005``.
    """
    from offmap.calibration.budget import Budget, chosen_rate

    if budget is None:
        return None if alpha is None else chosen_rate(alpha, None)
    if alpha is not None:
        raise ValueError("give either --alpha or --budget")
    alerts, slash, rows = budget.partition("/")
    try:
        return chosen_rate(None, Budget(float(alerts), per=int(rows)) if slash else float(alerts))
    except ValueError as error:
        raise ValueError(f"--budget must be alerts/rows, as 50/10000, or a rate; got {budget!r}: {error}") from None


def at_threshold(model: "Estimator", rate: float | None) -> "Estimator":
    """The model at another false-alarm rate, or as it is."""
    return model if rate is None else model.at(alpha=rate)
