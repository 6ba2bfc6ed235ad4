"""A promise for any outlier detector."""

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from offmap import parameters, persist
from offmap.arrays import FloatArray
from offmap.calibration.contract import PromisedDetector
from offmap.calibration.fingerprint import Fingerprint
from offmap.calibration.foreign import checked_scores, novelty_function, require_spread, row_count
from offmap.calibration.promise import Promise
from offmap.calibration.split import hold_out
from offmap.parameters import Fraction
from offmap.random_state import RandomState, as_generator, seed_parts


@dataclass(eq=False, repr=False)
class Calibrated(PromisedDetector, BaseEstimator):
    """Gives any outlier detector a threshold that keeps a stated false-alarm rate, p-values and ``assess``.

    Args:
        estimator: An outlier detector of scikit-learn or PyOD, a pipeline that ends in one, or a function that maps
            rows to scores, higher for novel rows.
        alpha: False-alarm rate that the threshold keeps.
        calibration: Share of the rows that ``fit`` holds out from training to set the threshold.
        random_state: Seed of the split, and of the estimator where it has none of its own.

    Attributes:
        estimator_: The fitted estimator.
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
    calibration: Fraction = 0.3
    random_state: RandomState = None

    def fit(self, X: Any, y: object = None) -> Self:
        """Fits a copy of the estimator on a part of the rows and calibrates it on the rest; ``y`` is ignored."""
        parameters.check(self)
        rng, rows = as_generator(self.random_state), row_count(X)
        if rows < 2:
            raise ValueError(f"X has {rows} sample(s); fit needs at least 2")
        train, held_out = hold_out(np.zeros(rows, dtype=np.int64), self.calibration, rng)
        model = self.estimator
        if hasattr(model, "fit"):
            model = clone(model)
            seed_parts(model, rng)
            model.fit(_safe_indexing(X, train))
        return self._calibrate(model, _safe_indexing(X, held_out))

    def calibrate(self, X: Any) -> Self:
        """Calibrates an estimator that is already fitted, on normal rows that it has **not** seen."""
        parameters.check(self)
        if row_count(X) < 1:
            raise ValueError("X has 0 samples; calibrate needs at least 1")
        return self._calibrate(self.estimator, X)

    def novelty(self, X: Any) -> FloatArray:
        """How novel each row is: higher is more novel, and above ``threshold_`` it is flagged."""
        check_is_fitted(self, "promise_")
        return self._novelty(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all but the estimator to one safetensors file; ``offmap.load(path, model=estimator)`` reads it.

        The file holds up to 16 calibration rows, on which the estimator is recognised.
        """
        check_is_fitted(self, "promise_")
        persist.save(self, path)

    def _calibrate(self, model: Any, X: Any) -> Self:
        self.estimator_ = model
        novelty = self._novelty(X)
        require_spread(novelty, self.alpha)
        self.promise_ = Promise(alpha=self.alpha).fit(novelty)
        self.fingerprint_ = Fingerprint().fit(model, X, novelty)
        return self

    def _novelty(self, X: Any) -> FloatArray:
        return checked_scores(novelty_function(self.estimator_)(X), row_count(X))
