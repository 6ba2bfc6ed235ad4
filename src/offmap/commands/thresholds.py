"""Another threshold for a fitted model, as the options of a command state it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offmap.workflow import Estimator

AUTO = "auto"


def stated_rate(alpha: str | float | None, budget: str | None) -> Any:
    """The false-alarm rate that is stated, as a rate or as a budget; "auto" if it is left to the rows, None if neither.

    Args:
        alpha: The rate, or "auto".
        budget: Alerts per rows, as ``50/10000`` or ``0.005``.
    """
    from offmap.calibration.budget import Budget, chosen_rate

    if alpha is not None and budget is not None:
        raise ValueError("give either --alpha or --budget")
    if budget is None:
        return alpha if alpha is None or alpha == AUTO else chosen_rate(_number(alpha), None)
    alerts, slash, rows = budget.partition("/")
    try:
        return chosen_rate(None, Budget(float(alerts), per=int(rows)) if slash else float(alerts))
    except ValueError as error:
        raise ValueError(f"--budget must be alerts/rows, as 50/10000, or a rate; got {budget!r}: {error}") from None


def _number(alpha: str | float) -> float:
    try:
        return float(alpha)
    except ValueError:
        raise ValueError(f"--alpha must be a rate between 0 and 1, or {AUTO!r}; got {alpha!r}") from None


def at_threshold(model: "Estimator", rate: float | None) -> "Estimator":
    """The model at another false-alarm rate, or as it is."""
    return model if rate is None else model.at(alpha=rate)
