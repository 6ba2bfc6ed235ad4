"""What a monitor knows of a stream."""

from dataclasses import asdict, dataclass
from math import log
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Drift:
    """Whether a stream has changed, since when, and what to do.

    Args:
        rows: How many rows of the stream were seen.
        log_capital: The logarithm of the martingale's capital after the last row.
        level: The capital at which the alarm is raised.
        alarm_row: The row that raised the alarm, counted from 0; None if there was no alarm.
        since: The row at which the change probably began; None if there was no alarm.
        calibration_rows: How many rows the model was calibrated on.

    Example:
        >>> drift = Drift(rows=600, log_capital=7.1, level=100.0, alarm_row=432, since=301, calibration_rows=500)
        >>> print(drift)
        alarm at row 432: the rows changed at about row 301. Recalibrate the model on normal rows since then ...
        >>> Drift(rows=600, log_capital=-0.3, level=100.0, alarm_row=None, since=None, calibration_rows=500).alarm
        False
    """

    rows: int
    log_capital: float
    level: float
    alarm_row: int | None
    since: int | None
    calibration_rows: int

    @property
    def alarm(self) -> bool:
        """Whether the alarm was raised."""
        return self.alarm_row is not None

    @property
    def advice(self) -> str:
        """What to do about it."""
        if not self.alarm:
            return "nothing to do"
        available = self.rows - (self.since or 0)
        return (
            f"Recalibrate the model on normal rows since then ({available} so far; it was calibrated on "
            f"{self.calibration_rows}), and start a new monitor on them; refit it if they are of a new kind"
        )

    def __str__(self) -> str:
        if not self.alarm:
            return f"no change in {self.rows} rows: log capital {self.log_capital:.2f}, alarm at {log(self.level):.2f}"
        return f"alarm at row {self.alarm_row}: the rows changed at about row {self.since}. {self.advice}"

    def to_dict(self) -> dict[str, Any]:
        """Every number and the advice, for JSON."""
        return asdict(self) | {"alarm": self.alarm, "advice": self.advice}
