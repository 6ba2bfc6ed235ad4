"""The promise: a threshold and p-values that are given the novelty of rows the model has not seen."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta
from sklearn.base import BaseEstimator

from offmap.arrays import FloatArray
from offmap.calibration.conditional import conditional_p_values, rows_above
from offmap.calibration.conformal import CalibrationWarning, attainable_rate, p_values, random_p_values, threshold
from offmap.errors import warn_caller
from offmap.parameters import Fraction
from offmap.random_state import RandomState, as_generator

# If the threshold may have so many held-out rows above it and has none, that is no chance.
_MANY = 3
# The rate of the models of folds, whose thresholds nobody reads.
_DECIDES_NOTHING = 0.5


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
        confidence: Probability that the rate of this very model is at most ``alpha``. Then the threshold lies
            higher, and p-values hold for every rate at once with that confidence, which makes them larger: every row
            with a p-value of at most ``alpha`` is flagged, and some with a larger one. None promises the rate on
            average over models.
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
    confidence: Fraction | None = None
    own_threshold: float | None = None

    def fit(self, novelty: ArrayLike) -> Self:
        """Takes the novelty of held-out normal rows; there may be none."""
        self.calibration_novelty_: FloatArray = np.sort(np.asarray(novelty, dtype=np.float64))
        self.threshold_ = self._threshold()
        self._warn_of_ties()
        return self

    def _warn_of_ties(self) -> None:
        """A score with few values cannot be cut at any rate; say which one is attained."""
        found = self.false_alarm_rate
        if found is None or self.own_threshold is not None or self.confidence is not None:
            return
        above = int(self.novel(self.calibration_novelty_).sum())
        few = found.rate < self.alpha / 10 or (above == 0 and self.alpha < _DECIDES_NOTHING)
        if few and rows_above(found.rows, self.alpha) >= _MANY:
            warn_caller(
                f"many held-out rows share one novelty, so that the rate of false alarms is {found.rate:.2g} instead "
                f"of {self.alpha:g}; p_value(X, random_ties=seed) breaks ties at random and attains any rate",
                CalibrationWarning,
            )

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
        return threshold(self.calibration_novelty_, self.alpha, self.confidence) if self.has_rows else np.inf

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
        return attainable_rate(len(self.calibration_novelty_), self.alpha, self.confidence)

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

    def at(self, alpha: float) -> "Promise":
        """The promise of another rate, from the same held-out rows."""
        self.require_rows("at")
        return Promise(alpha=alpha, confidence=self.confidence).fit(self.calibration_novelty_)

    def plain(self) -> "Promise":
        """The promise on average over models, from the same held-out rows."""
        return Promise(alpha=self.alpha).fit(self.calibration_novelty_)

    def novel(self, novelty: ArrayLike) -> NDArray[np.bool_]:
        """Whether each row is flagged."""
        return np.asarray(novelty) > self.threshold_

    def p_value(self, novelty: ArrayLike, *, random_ties: RandomState = None) -> FloatArray:
        """The conformal p-value of each row; small is novel.

        Args:
            novelty: Novelty of the rows.
            random_ties: Seed that breaks ties with held-out rows at random, for discrete scores. By default a tie
                counts for the row, and the same row always has the same p-value.
        """
        self.require_rows("p_value")
        scores, calibration = np.asarray(novelty, dtype=np.float64), self.calibration_novelty_
        if random_ties is not None and self.confidence is not None:
            raise ValueError("random_ties cannot be combined with confidence")
        if random_ties is not None:
            return random_p_values(calibration, scores, as_generator(random_ties))
        p = p_values(calibration, scores)
        return p if self.confidence is None else conditional_p_values(len(calibration), p, self.confidence)

    def require_rows(self, asked: str) -> None:
        """Raises a ``ValueError`` if there were no held-out rows, which ``asked`` needs."""
        if not self.has_rows:
            raise ValueError(f"{asked} needs held-out rows; fit with calibration above 0")
