"""The promise: a threshold and p-values that are given the novelty of rows the model has not seen."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta
from sklearn.base import BaseEstimator

from offmap.arrays import FloatArray
from offmap.calibration.conformal import p_values, threshold
from offmap.parameters import Fraction


class RateInterval(NamedTuple):
    """A false-alarm rate, and the interval that holds the true rate of this very model with 95 % confidence."""

    rate: float
    low: float
    high: float
    rows: int

    def __str__(self) -> str:
        return f"{self.rate:.1%} [{self.low:.1%}, {self.high:.1%}] on {self.rows:,} held-out rows"


@dataclass(kw_only=True, eq=False, repr=False)
class Promise(BaseEstimator):
    """Turns novelty into decisions and p-values; fitted on the novelty of normal rows that trained nothing.

    Args:
        alpha: False-alarm rate to keep.
        own_threshold: Decision threshold of the method itself. It takes the place of the calibrated one and promises
            no rate; the rate is then only measured.

    Attributes:
        calibration_novelty_: Novelty of the held-out rows, in ascending order.
        threshold_: Rows above it are flagged; infinite if there were neither held-out rows nor an own threshold.

    Example:
        >>> promise = Promise(alpha=0.05).fit(np.arange(1.0, 100.0))
        >>> promise.novel([94.0, 96.0]), promise.p_value([94.0, 96.0])
        (array([False,  True]), array([0.07, 0.05]))
    """

    # A model file that lacks one of these is refused.
    always_fitted: ClassVar[frozenset[str]] = frozenset({"calibration_novelty_", "threshold_"})

    alpha: Fraction = 0.05
    own_threshold: float | None = None

    def fit(self, novelty: ArrayLike) -> Self:
        """Takes the novelty of held-out normal rows; there may be none."""
        self.calibration_novelty_: FloatArray = np.sort(np.asarray(novelty, dtype=np.float64))
        self.threshold_ = self._threshold()
        return self

    def _check_fitted(self) -> None:
        """Raises a ``ValueError`` unless the fitted state is one that ``fit`` leaves; ``load`` calls it."""
        held_out, limit = self.calibration_novelty_, self.threshold_
        flat = isinstance(held_out, np.ndarray) and held_out.dtype == np.float64 and held_out.ndim == 1
        if not flat or np.isnan(held_out).any() or (held_out[1:] < held_out[:-1]).any():
            raise ValueError("calibration_novelty_ must be numbers in ascending order")
        if type(limit) not in (int, float) or np.isnan(limit):
            raise ValueError(f"threshold_ must be a number; got {limit!r}")

    def _threshold(self) -> float:
        if self.own_threshold is not None:
            return self.own_threshold
        return threshold(self.calibration_novelty_, self.alpha) if self.has_rows else np.inf

    @property
    def has_rows(self) -> bool:
        """Whether there were held-out rows; without them there are no p-values."""
        return len(self.calibration_novelty_) > 0

    @property
    def rate(self) -> float | None:
        """The false-alarm rate that the threshold keeps: ``alpha``, or what so few held-out rows allow.

        None if nothing is promised: there were no held-out rows, or the threshold is the method's own.
        """
        if self.own_threshold is not None or not self.has_rows:
            return None
        return max(self.alpha, 1 / (len(self.calibration_novelty_) + 1))

    @property
    def false_alarm_rate(self) -> RateInterval | None:
        r"""The false-alarm rate to expect, with its 95 % interval; None without held-out rows.

        A calibrated threshold with $m$ of $n$ held-out rows above it has a rate that is distributed as
        $\mathrm{Beta}(m + 1, n - m)$. For an own threshold it is the share $m / n$ with the interval of Clopper and
        Pearson.
        """
        if not self.has_rows:
            return None
        n, above = len(self.calibration_novelty_), int(self.novel(self.calibration_novelty_).sum())
        if self.own_threshold is None:
            low, high = (float(beta.ppf(end, above + 1, n - above)) for end in (0.025, 0.975))
            return RateInterval((above + 1) / (n + 1), low, high, n)
        low = float(beta.ppf(0.025, above, n - above + 1)) if above else 0.0
        high = float(beta.ppf(0.975, above + 1, n - above)) if above < n else 1.0
        return RateInterval(above / n, low, high, n)

    def novel(self, novelty: ArrayLike) -> NDArray[np.bool_]:
        """Whether each row is flagged."""
        return np.asarray(novelty) > self.threshold_

    def p_value(self, novelty: ArrayLike) -> FloatArray:
        """The conformal p-value of each row; small is novel."""
        if not self.has_rows:
            raise ValueError("p_value needs held-out rows; fit with calibration above 0")
        return p_values(self.calibration_novelty_, np.asarray(novelty, dtype=np.float64))
