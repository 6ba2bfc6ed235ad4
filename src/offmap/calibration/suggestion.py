r"""Which rate of false alarms to take, by rows whose classes nobody knows.

P-values of normal rows are spread evenly between 0 and 1, and those of novel rows gather at 0. So of $n$ rows a share
$\pi = \#\{p > \lambda\} / ((1 - \lambda) n)$ is normal. If rows with $p \le \alpha$ are flagged, a share $\pi \alpha$
of all rows are false alarms, and the rest of the flagged share $F(\alpha)$ is novel. If a false alarm costs $c$ times
as much as a missed novel row, the cost is least where $F(\alpha) - (1 + c) \pi \alpha$ is largest.
"""

from decimal import ROUND_CEILING, Context
from typing import NamedTuple

import numpy as np

from offmap.arrays import FloatArray
from offmap.parameters import Positive, require

# Hardly any novel row has a p-value above it.
_LAMBDA = 0.5


class SuggestedRate(NamedTuple):
    """A rate of false alarms, and what to expect of it on the rows that it was suggested for.

    Args:
        alpha: The rate; if no row seems to be novel, the smallest one that can be kept.
        novel_share: Share of the rows that are novel.
        precision: Share of the flagged rows that are novel; nan if no row seems to be.
        recall: Share of the novel rows that are flagged; nan if no row seems to be.
    """

    alpha: float
    novel_share: float
    precision: float
    recall: float

    def __str__(self) -> str:
        if not self.novel_share:
            return (
                "no row seems to be novel, so that every alarm would be false; "
                f"the smallest alpha is {_rounded_up(self.alpha):g}"
            )
        return (
            f"alpha = {_rounded_up(self.alpha):g}: {self.novel_share:.0%} of the rows seem to be novel, "
            f"{self.recall:.0%} of these would be flagged, and {self.precision:.0%} of the flagged rows would be novel"
        )


def suggest_rate(p_value: FloatArray, *, false_alarm_cost: float = 1.0, smallest: float | None = None) -> SuggestedRate:
    """The rate of false alarms with the least expected cost on rows of which some may be novel.

    Args:
        p_value: The conformal p-values of the rows, all of them: normal and novel ones as they come.
        false_alarm_cost: What a false alarm costs, if a novel row that is missed costs 1.
        smallest: The rate that is suggested if no row seems to be novel: 1 / (n + 1) with n held-out rows. By default
            the smallest of the p-values, which may be large.

    Reference: Storey, A Direct Approach to False Discovery Rates, 2002, for the share of normal rows.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> p_value = np.concatenate([rng.uniform(size=700), rng.beta(0.1, 3, size=300)])
        >>> print(suggest_rate(p_value))
        alpha = 0.0...: 2...% of the rows seem to be novel, ...% of these would be flagged, and ...% of the flagged ...
    """
    require("false_alarm_cost", false_alarm_cost, Positive)
    if len(p_value) == 0:
        raise ValueError("p_value must hold at least one row")
    normal = min(1.0, float(np.mean(p_value > _LAMBDA)) / (1 - _LAMBDA))
    rates, counts = np.unique(p_value[p_value <= _LAMBDA], return_counts=True)
    flagged = counts.cumsum() / len(p_value)
    found = flagged - normal * rates
    gain = found - false_alarm_cost * normal * rates
    if len(gain) == 0 or gain.max() <= 0:
        return SuggestedRate(float(p_value.min()) if smallest is None else smallest, 0.0, np.nan, np.nan)
    best, novel = int(gain.argmax()), max(1 - normal, float(found.max()))
    return SuggestedRate(float(rates[best]), novel, float(found[best] / flagged[best]), float(found[best] / novel))


def _rounded_up(rate: float) -> float:
    """A rate to three digits. Rounded down it would flag fewer rows, or be less than the held-out rows can promise."""
    return float(Context(prec=3, rounding=ROUND_CEILING).create_decimal(str(rate)))
