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


def at_threshold(model: "Estimator", alpha: float | None, budget: str | None) -> "Estimator":
    """The model at another false-alarm rate or budget, or as it is.

    Args:
        model: A fitted model.
        alpha: The rate.
        budget: Alerts per rows, as ``50/10000`` or ``0.005``.
    """
    from offmap.calibration import Budget

    if alpha is None and budget is None:
        return model
    if budget is None or alpha is not None:
        return model.at(alpha=alpha, budget=None if budget is None else 0.5)
    alerts, slash, rows = budget.partition("/")
    try:
        return model.at(budget=Budget(float(alerts), per=int(rows)) if slash else float(alerts))
    except ValueError as error:
        raise ValueError(f"--budget must be alerts/rows, as 50/10000, or a rate; got {budget!r}: {error}") from None
