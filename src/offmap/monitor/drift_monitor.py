"""Watches a stream of novelties and raises an alarm when they no longer look like the calibration rows."""

import os
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from offmap import parameters, tensorfile
from offmap.arrays import FloatArray
from offmap.calibration.statement import calibrated_by_folds
from offmap.errors import reason_of
from offmap.monitor.drift import Drift
from offmap.monitor.martingale import Jumper
from offmap.monitor.ranks import semi_online_p_values
from offmap.parameters import Fraction, Multiple
from offmap.random_state import draw_seed

_FORMAT = "offmap.monitor.DriftMonitor"
_SCHEMA = 1
_STATE = ("past_", "folds_", "log_capital_", "shares_", "path_", "alarm_row_", "since_", "seed_")


@dataclass(kw_only=True, eq=False, repr=False)
class DriftMonitor(BaseEstimator):
    r"""Raises an alarm when a model's stream of rows changes, at a stated rate of false alarms over the whole stream.

    Each row is ranked among the calibration rows and all rows before it, and a martingale bets that the ranks are not
    uniform. Without a change its capital ever reaches ``level`` with a probability of at most 1 / ``level``, however
    long the stream and however few the calibration rows. Rows that get more novel, or less, both raise it.

    Args:
        level: Capital at which the alarm is raised: 100 for 1 % false alarms. Higher means fewer and later alarms.
        jump: Share of the capital that is redistributed before each row. Lower it for slow, small changes.
        random_state: Seed of the draws that break ties.

    Attributes:
        past_: Novelty of calibration rows and stream rows so far, in ascending order.
        path_: The logarithm of the capital after each row of the stream.
        alarm_row_: The row at which the alarm was raised, counted from 0; -1 before.
        since_: The row at which the change probably began; -1 before an alarm.

    Reference: Vovk et al., Retrain or not retrain: conformal test martingales for change-point detection, 2021.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> monitor = DriftMonitor(random_state=0).fit(rng.normal(size=500))
        >>> monitor.update(rng.normal(size=300)).alarm
        False
        >>> drift = monitor.update(rng.normal(loc=1.0, size=300))
        >>> drift.alarm, 250 < drift.since < 350
        (True, True)
    """

    level: Multiple = 100.0
    jump: Fraction = 0.01
    random_state: int | None = None

    def fit(self, novelty: ArrayLike, y: object = None, *, folds: ArrayLike = ()) -> Self:
        """Starts with the novelty of calibration rows, such as ``model.calibration_novelty_``.

        Args:
            novelty: The novelty of the calibration rows.
            y: Ignored.
            folds: ``fold_novelty(model)``, by which ``started_with`` tells models with ``calibration="cv"`` apart.
        """
        parameters.check(self)
        self.past_, self.folds_ = np.sort(_checked(novelty)), _checked(folds)
        if len(self.past_) == 0:
            raise ValueError("novelty has no values; give that of calibration rows, as model.calibration_novelty_")
        start = Jumper.start(1)
        self.log_capital_, self.shares_ = start.log_capital, start.shares
        self.path_: FloatArray = np.empty(0)
        self.alarm_row_ = self.since_ = -1
        self.seed_ = draw_seed(self.random_state)
        return self

    def update(self, novelty: ArrayLike) -> Drift:
        """Takes the novelty of the next rows, in their order, and says whether the stream has changed."""
        check_is_fitted(self, "past_")
        rows = _checked(novelty)
        if len(rows):
            self._play(rows)
            self.past_ = np.sort(np.concatenate([self.past_, rows]))
        return self.drift

    def _play(self, rows: FloatArray) -> None:
        p_values = semi_online_p_values(self.past_[None], rows[None], self._ties(len(rows))[None])
        after, path = Jumper(self.log_capital_, self.shares_).play(p_values, self.jump)
        self.log_capital_, self.shares_ = after
        self.path_ = np.concatenate([self.path_, path[0]])
        reached = self.path_ >= np.log(self.level)
        if self.alarm_row_ < 0 and reached.any():
            self.alarm_row_ = int(reached.argmax())
            self.since_ = change_row(self.path_[: self.alarm_row_ + 1])

    def _ties(self, count: int) -> FloatArray:
        """Draws of the next rows: each depends on the seed and the row's number, so a restart changes nothing."""
        generator = np.random.PCG64(self.seed_)
        generator.advance(len(self.path_))
        return np.random.Generator(generator).random(count)

    @property
    def drift(self) -> Drift:
        """What is known of the stream so far."""
        check_is_fitted(self, "past_")
        return Drift(
            rows=len(self.path_),
            log_capital=float(self.log_capital_[0]),
            level=float(self.level),
            alarm_row=None if self.alarm_row_ < 0 else self.alarm_row_,
            since=None if self.since_ < 0 else self.since_,
            calibration_rows=len(self.past_) - len(self.path_),
        )

    def started_with(self, novelty: ArrayLike, folds: ArrayLike = ()) -> bool:
        """Whether ``fit`` was given these calibration rows; a stream is compared with those of its own model only.

        Args:
            novelty: The novelty of the calibration rows.
            folds: ``fold_novelty(model)``: with ``calibration="cv"``, ``novelty`` depends on the number of rows alone.
        """
        check_is_fitted(self, "past_")
        rows = _checked(novelty)
        same = len(rows) == len(self.past_) - len(self.path_) and bool(np.isin(rows, self.past_).all())
        return same and np.array_equal(self.folds_, _checked(folds))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the whole state to one safetensors file; ``DriftMonitor.load`` goes on where it stopped."""
        check_is_fitted(self, "past_")
        state = {name: getattr(self, name) for name in _STATE}
        content = {"format": _FORMAT, "schema": _SCHEMA, "parameters": self.get_params(), "state": state}
        tensorfile.write(path, content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Restores what ``save`` wrote, or raises a ``ValueError`` that says why it cannot."""
        content = tensorfile.read(path)
        found = [content.get(name) for name in ("format", "schema")] if isinstance(content, dict) else []
        # Types first: a tensor cannot be compared with a number.
        if [type(value) for value in found] != [type(_FORMAT), type(_SCHEMA)] or found != [_FORMAT, _SCHEMA]:
            raise ValueError(f"{os.fspath(path)} does not hold the state of a DriftMonitor of this release")
        try:
            return cls._restored(content["parameters"], content["state"])
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise ValueError(
                f"{os.fspath(path)} holds no state that a DriftMonitor leaves: {reason_of(error)}"
            ) from None

    @classmethod
    def _restored(cls, settings: dict[str, Any], state: dict[str, Any]) -> Self:
        monitor = cls(**settings)
        parameters.check(monitor)
        for name in _STATE:
            setattr(monitor, name, state[name])
        monitor._check_state()
        return monitor

    def _check_state(self) -> None:
        """Raises a ``ValueError`` unless the state is one that ``update`` leaves; a file may say anything."""
        rows, last = len(self.path_), (self.alarm_row_, self.since_, self.seed_)
        fits = {
            "past_": _are_numbers(self.past_, len(self.past_)) and (self.past_[1:] >= self.past_[:-1]).all(),
            "folds_": _are_numbers(self.folds_, len(self.folds_)),
            "path_": _are_numbers(self.path_, rows) and rows < len(self.past_),
            "log_capital_": _are_numbers(self.log_capital_, 1),
            "shares_": _are_numbers(self.shares_, 1, 3) and (self.shares_ >= 0).all(),
            "alarm_row_, since_ and seed_": all(type(number) is int for number in last)
            and -1 <= self.alarm_row_ < max(rows, 1)
            and -1 <= self.since_ <= rows
            and self.seed_ >= 0,
        }
        if wrong := [name for name, fit in fits.items() if not fit]:
            raise ValueError(f"{wrong[0]} does not fit")


def fold_novelty(model: Any) -> FloatArray:
    """Novelty of the calibration rows to the models of their folds; empty unless folds set the model's threshold.

    Args:
        model: A fitted model.

    Example:
        >>> from offmap.density import ECODDetector
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> [len(fold_novelty(ECODDetector(calibration=share).fit(X))) for share in ("cv", 0.3)]
        [100, 0]
    """
    if not calibrated_by_folds(model):
        return np.empty(0)
    return np.concatenate([member.calibration_novelty_ for member in model.members_])


def change_row(path: FloatArray) -> int:
    """The row after which the capital grew to the alarm: that of its last minimum.

    Example:
        >>> change_row(np.array([-0.1, -0.4, 0.5, 2.0, 4.7]))
        2
    """
    before = np.concatenate([[0.0], path])
    return len(path) - int(before[::-1].argmin())


def _are_numbers(values: Any, *shape: int) -> bool:
    flat = isinstance(values, np.ndarray) and values.dtype == np.float64 and values.shape == shape
    return flat and not np.isnan(values).any()


def _checked(novelty: Any) -> FloatArray:
    values = np.asarray(novelty, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"novelty must be one number per row; got shape {values.shape}")
    if np.isnan(values).any():
        raise ValueError(f"novelty is NaN at row {int(np.isnan(values).argmax())}; score the rows with one model")
    return values
