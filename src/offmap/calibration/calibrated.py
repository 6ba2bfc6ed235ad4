"""A promise for any outlier detector."""

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from offmap import parameters, persist
from offmap.arrays import FloatArray
from offmap.calibration.contamination import Contamination, looks_normal, ordinary_rows
from offmap.calibration.contract import PromisedDetector, forget_fit
from offmap.calibration.cv import Folds, fit_members, fold_splits
from offmap.calibration.fingerprint import Fingerprint
from offmap.calibration.foreign import (
    checked_scores,
    novelty_function,
    require_detector,
    require_spread,
    row_count,
    with_rows,
)
from offmap.calibration.notices import warn_of_company
from offmap.calibration.split import Split, hold_out
from offmap.calibration.surprise import surprise_steps
from offmap.parameters import Fraction
from offmap.random_state import RandomState, as_generator, seed_parts


@dataclass(eq=False, repr=False)
class Calibrated(PromisedDetector, BaseEstimator):
    """Gives any outlier detector a threshold that keeps a stated false-alarm rate, p-values and ``assess``.

    Args:
        estimator: An outlier detector of scikit-learn or PyOD, a pipeline that ends in one, or a function that maps
            rows to scores, higher for novel rows.
        alpha: False-alarm rate that the threshold keeps.
        calibration: Share of the rows that ``fit`` holds out from training to set the threshold. With "cv" every row
            trains and calibrates: one copy per fold is fitted (CV+), for data too small to hold rows out.
        folds: Number of folds, and of copies, of ``calibration="cv"``.
        confidence: Probability that the rate of this very model is at most ``alpha``, such as 0.9. By default the rate
            holds on average over models fitted like this one.
        contamination: Share of the rows that may be novel themselves; so many of the rows that look most novel to a
            model of other rows are left out before the fit, or by ``calibrate``. "auto" leaves out those far beyond the
            rest.
        random_state: Seed of the split, and of the estimator where it has none of its own.

    Attributes:
        estimator_: The fitted estimator; with ``calibration="cv"`` there is one in each of ``members_``.
        promise_: The ``Promise`` that decides.
        fingerprint_: What tells this estimator from others when the model is loaded.
        threshold_: Rows with a novelty above it are flagged.
        calibration_novelty_: Novelty of the held-out rows, in ascending order.

    Example:
        >>> from sklearn.ensemble import IsolationForest
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = Calibrated(IsolationForest(), alpha=0.05, random_state=0).fit(X)
        >>> model.predict([[0.0, 0.1, -0.2], [9.0, 9.0, 9.0]])
        array([ 1, -1])

        A model that is fitted already is calibrated on rows that it has not seen:

        >>> forest = IsolationForest(random_state=0).fit(X[:300])
        >>> Calibrated(forest, alpha=0.1).calibrate(X[300:]).assess([[9.0, 9.0, 9.0]]).novel
        array([ True])
    """

    # The part that a file names and checks, but does not hold.
    foreign: ClassVar[tuple[str, str]] = ("estimator", "estimator_")
    always_fitted: ClassVar[frozenset[str]] = frozenset({"promise_", "fingerprint_"})

    estimator: Any
    _: KW_ONLY
    alpha: Fraction = 0.05
    calibration: Fraction | Literal["cv"] = 0.3
    folds: Folds = 5
    confidence: Fraction | None = None
    contamination: Contamination = 0.0
    random_state: RandomState = None

    def fit(self, X: Any, y: object = None) -> Self:
        """Fits a copy of the estimator on a part of the rows and calibrates it on the rest; ``y`` is ignored."""
        self._start()
        X = with_rows(X)
        rng, rows = as_generator(self.random_state), row_count(X)
        if rows < 2:
            raise ValueError(f"X has {rows} sample(s); fit needs at least 2")
        if self.contamination:
            X, self.trimmed_ = ordinary_rows(self, X, rng)
        groups = np.zeros(row_count(X), dtype=np.int64)
        if self.calibration == "cv":
            self.members_ = fit_members(self, X, None, fold_splits(groups, self.folds, rng), rng)
            self.promise_ = self._new_promise().fit(surprise_steps(len(groups)))
            return self
        return self._fit_split(X, None, hold_out(groups, self.calibration, rng), rng)

    def _start(self) -> None:
        parameters.check(self)
        require_detector(self.estimator)
        if self.calibration == "cv" and self.confidence is not None:
            raise ValueError('confidence needs rows held out from one model; give calibration as a share, not "cv"')
        forget_fit(self)

    def _fit_split(self, X: Any, y: object, split: Split, rng: np.random.Generator | None = None) -> Self:
        """Trains on some rows and calibrates on others."""
        model = self.estimator
        if hasattr(model, "fit"):
            model = clone(model)
            seed_parts(model, rng or as_generator(self.random_state))
            model.fit(_safe_indexing(X, split.train))
        return self._calibrate(model, _safe_indexing(X, split.held_out))

    def calibrate(self, X: Any) -> Self:
        """Calibrates an estimator that is already fitted, on normal rows that it has **not** seen."""
        self._start()
        X = with_rows(X)
        if row_count(X) < 1:
            raise ValueError("X has 0 samples; calibrate needs at least 1")
        if self.contamination:
            kept = looks_normal(checked_scores(novelty_function(self.estimator)(X), row_count(X)), self.contamination)
            X, self.trimmed_ = _safe_indexing(X, np.flatnonzero(kept)), float(1 - kept.mean())
        return self._calibrate(self.estimator, X)

    def novelty(self, X: Any) -> FloatArray:
        """How novel each row is: higher is more novel, and above ``threshold_`` it is flagged."""
        check_is_fitted(self, "promise_")
        if members := self._members():
            return self._surprise([member.novelty(X) for member in members])
        return self._novelty(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all but the estimator to one safetensors file; ``offmap.load(path, model=estimator)`` reads it.

        The file holds up to 16 calibration rows, on which the estimator is recognised. With ``calibration="cv"`` there
        is one estimator per fold, with rows of its own; keep them and load with
        ``model=[member.estimator_ for member in model.members_]``.
        """
        check_is_fitted(self, "promise_")
        persist.save(self, path)

    def _calibrate(self, model: Any, X: Any) -> Self:
        self.estimator_ = model
        novelty = self._novelty(X)
        require_spread(novelty)
        self.promise_ = self._new_promise().fit(novelty)
        self.fingerprint_ = Fingerprint().fit(model, X, novelty)
        warn_of_company(self.fingerprint_, model, novelty_function(model))
        return self

    def _novelty(self, X: Any) -> FloatArray:
        return checked_scores(novelty_function(self.estimator_)(X), row_count(X))
