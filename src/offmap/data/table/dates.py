"""How dates and times become features: the hour, the weekday and the season as points on a circle, and the age."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from offmap.data.table.cells import Read, as_days
from offmap.data.table.columns import Encoded, Standard

__all__ = ["DateCodec"]

Floats = NDArray[np.float64]
_YEAR = 365.2425
_CYCLES = {"hour": 1.0, "weekday": 7.0, "season": _YEAR}


@dataclass(frozen=True)
class DateCodec:
    r"""Two features, $\sin$ and $\cos$, per cycle that the training cells pass through, and the age if they span years.

    The hour counts if there are times of day, the weekday if there are seven days, the season if there is a year. Dates
    over less than two years are taken for the time of an event: tomorrow's are later than all of them, and that alone
    must not make a row novel. Dates over more, such as birthdays, count by their age too.

    Args:
        form: Format of dates that are texts.
        low: First training day, in days since 1970.
        high: Last training day.
        cycles: Names of the cycles.
        aged: Whether the age is a feature.
        standard: Mean and spread.
        zone: The time zone that the training column named; cells of another zone are converted to it.
    """

    kind: ClassVar[str] = "date"

    form: str
    low: float
    high: float
    cycles: list[str]
    aged: bool
    standard: Standard
    zone: str = ""

    @classmethod
    def fit(cls, days: Floats, form: str, zone: str = "") -> Self:
        """Measures training days, in which NaN is a gap."""
        present = days[~np.isnan(days)]
        low, high = float(present.min()), float(present.max())
        timed = bool((present % 1 != 0).any())
        fits = {"hour": timed, "weekday": high - low >= 7, "season": high - low >= _YEAR}
        cycles = [name for name in _CYCLES if fits[name]]
        aged = high - low >= 2 * _YEAR or not cycles
        return cls(form, low, high, cycles, aged, Standard.fit(_parts(days, cycles, aged)), zone)

    @property
    def feature_names(self) -> list[str]:
        """The cycles, the age, and whether it is missing."""
        circle = [f"{cycle} ({wave})" for cycle in self.cycles for wave in ("sin", "cos")]
        return self.standard.names([*circle, *(["age"] if self.aged else [])])

    @property
    def about(self) -> str:
        """The first and the last day."""
        first, last = (pd.Timestamp(day, unit="D").date() for day in (self.low, self.high))
        return f"{first} to {last}"

    def read(self, column: Any) -> Read:
        """The cells as days."""
        return as_days(column, self.form, self.zone)

    def encode(self, column: Any, read: Read | None = None) -> Encoded:
        """Points on circles, and the age."""
        return self.standard.encode(_parts((read or self.read(column)).values, self.cycles, self.aged))


def _parts(days: Floats, cycles: list[str], aged: bool) -> Floats:
    # Day 0, 1 January 1970, was a Thursday: any origin will do, as long as it is the same in training and scoring.
    angles = [2 * np.pi * days / _CYCLES[cycle] for cycle in cycles]
    circle = [wave(angle) for angle in angles for wave in (np.sin, np.cos)]
    return np.column_stack([*circle, *([days] if aged else [])])
