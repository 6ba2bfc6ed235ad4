"""Covariate shift: held-out rows are weighted so that they are distributed as recent rows are."""

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from offmap import parameters, persist
from offmap.arrays import FloatArray
from offmap.calibration.conditional import rows_needed
from offmap.calibration.contract import PromisedModel
from offmap.calibration.wrapping import decided, feature_rows, require_plain_promise
from offmap.parameters import Positive
from offmap.verdict import Verdict

# The p-value of a row of such a weight is 1; a larger one overflows, and leaves no p-value at all.
_LARGEST_LOG_WEIGHT = 700.0


def weighted_p_values(
    calibration: FloatArray, weights: FloatArray, novelty: FloatArray, own_weights: FloatArray
) -> FloatArray:
    r"""Conformal p-values of rows whose source has shifted: each held-out row counts by its weight.

    $$p(x) = \frac{w(x) + \sum_i w(x_i) 1[c_i \ge s]}{w(x) + \sum_i w(x_i)}$$

    Args:
        calibration: Novelty of the held-out rows.
        weights: Their weights, the ratio of the recent density to theirs.
        novelty: Novelty of the rows to assess.
        own_weights: The weights of these.

    Reference: Tibshirani, Barber, Candès and Ramdas, Conformal Prediction under Covariate Shift, 2019, equation 5.

    Example:
        >>> weighted_p_values(np.array([1.0, 2.0, 3.0]), np.ones(3), np.array([0.0, 2.0, 9.0]), np.ones(3))
        array([1.  , 0.75, 0.25])
    """
    order = np.argsort(calibration, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(weights[order])])
    at_least = below[-1] - below[np.searchsorted(calibration[order], novelty, side="left")]
    return np.asarray((own_weights + at_least) / (own_weights + below[-1]))


@dataclass(eq=False, repr=False)
class Reweighted(BaseEstimator):
    r"""Keeps a model's promise under covariate shift: the mix of rows has changed, but what is normal has not.

    A logistic regression tells the held-out rows from recent ones; its odds are the weights of the held-out rows. The
    promise is that of the model, for normal rows that are distributed as the recent ones are. It holds as far as the
    weights are right: the shift must be one that a logistic regression on the features can see, and recent rows must
    lie where there are held-out rows.

    Args:
        model: A fitted model of Offmap, ``Calibrated`` or ``Guarded``, which is asked about rows of features; without
            ``confidence`` and ``by_class``, which weights do not keep.
        penalty: Strength of the L2 penalty of the logistic regression. Raise it for more even weights.

    Attributes:
        calibration_novelty_: Novelty of the held-out rows.
        weights_: Weight of each held-out row, 1 on average.
        effective_rows_: Number of unweighted rows that would tell as much, $(\sum w)^2 / \sum w^2$.
        mean_: Mean of the features, with ``scale_``, ``coef_`` and ``intercept_`` what computes the weight of a row.

    Example:
        >>> from offmap.density import NearestNeighborDetector
        >>> rng = np.random.default_rng(0)
        >>> model = NearestNeighborDetector(random_state=0).fit(rng.normal(size=(1000, 2)))
        >>> calibration, recent = rng.normal(size=(1000, 2)), rng.normal(0.7, 1, size=(1000, 2))
        >>> shifted = Reweighted(model).fit(calibration, recent)
        >>> bool(shifted.effective_rows_ < 1000)
        True
    """

    # A model file that lacks one of these is refused.
    always_fitted: ClassVar[frozenset[str]] = frozenset(
        {"calibration_novelty_", "weights_", "effective_rows_", "mean_", "scale_", "coef_", "intercept_"}
    )

    # A file that lacks the foreign model of this part is given it when it is loaded.
    wraps: ClassVar[str] = "model"

    model: Any
    _: KW_ONLY
    penalty: Positive = 1.0

    def fit(self, X_calibration: ArrayLike, X_recent: ArrayLike) -> Self:
        """Takes normal rows that the model has **not** seen, and recent rows, normal or not.

        Raises:
            ValueError: The effective number of rows is too small for the rate of the model.
        """
        parameters.check(self)
        require_plain_promise(self.model, "weights do not keep; fit it without, or call its recalibrate")
        old, new = feature_rows("X_calibration", X_calibration), feature_rows("X_recent", X_recent)
        if old.shape[1] != new.shape[1]:
            raise ValueError(f"X_recent has {new.shape[1]} features; X_calibration has {old.shape[1]}")
        self._learn_weights(old, new)
        self.weights_ = self._weights(old)
        self.effective_rows_ = float(self.weights_.sum() ** 2 / np.square(self.weights_).sum())
        self._require_overlap(self._weights(new))
        self.calibration_novelty_ = self.model.novelty(X_calibration)
        return self

    def p_value(self, X: ArrayLike) -> FloatArray:
        """The weighted conformal p-value of each row; small is novel."""
        return self._p_value(X, self.model.novelty(X))

    def assess(self, X: ArrayLike) -> Verdict:
        """What the model says of each row, with weighted p-values and the decisions that follow from them."""
        check_is_fitted(self, "weights_")
        verdict = self.model.assess(X)
        p_value = self._p_value(X, verdict.novelty)
        return decided(verdict, self.model, p_value, p_value <= self.model.alpha * (1 + 1e-12))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """What the model predicts, with decisions from the weighted p-values."""
        verdict = self.assess(X)
        return np.where(verdict.novel, -1, 1) if verdict.label is None else verdict.label

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes model and weights to one safetensors file; ``offmap.load`` reads it.

        The model of another library inside ``Calibrated`` or ``Guarded`` is not in the file; give it to ``offmap.load``
        as ``model=``.
        """
        check_is_fitted(self, "weights_")
        persist.save(self, path)

    def _check_fitted(self) -> None:
        """Raises a ``ValueError`` unless the fitted state is one that ``fit`` leaves; ``load`` calls it."""
        if not isinstance(self.model, PromisedModel) or hasattr(self.model, "entity_ids_"):
            raise ValueError("model must be a fitted model that is asked about rows")
        for same in (("weights_", "calibration_novelty_"), ("mean_", "scale_", "coef_")):
            for name in same:
                values, length = getattr(self, name), len(getattr(self, same[0]))
                flat = isinstance(values, np.ndarray) and values.dtype == np.float64 and values.shape == (length,)
                if not flat or not length or np.isnan(values).any():
                    raise ValueError(f"{name} must be numbers, as many as {same[0]} has")
        if not all(type(number) is float for number in (self.effective_rows_, self.intercept_)):
            raise ValueError("effective_rows_ and intercept_ must be numbers")

    def _require_overlap(self, recent_weights: FloatArray) -> None:
        """Refuses weights that leave too few rows, or p-values that cannot be small whatever the novelty."""
        alpha, needed = self.model.alpha, rows_needed(self.model.alpha)
        smallest = float(np.median(recent_weights / (recent_weights + self.weights_.sum())))
        if self.effective_rows_ < needed or smallest > alpha:
            blind = f", and half of the recent rows cannot get a p-value below {smallest:.2g}"
            raise ValueError(
                f"the {len(self.weights_)} rows of X_calibration count as {self.effective_rows_:.0f} after weighting"
                f"{blind if smallest > alpha else ''}; a rate of {alpha:g} needs {needed} rows where those of X_recent "
                "lie: call the model's recalibrate with recent normal rows instead"
            )

    def _p_value(self, X: ArrayLike, novelty: FloatArray) -> FloatArray:
        check_is_fitted(self, "weights_")
        return weighted_p_values(self.calibration_novelty_, self.weights_, novelty, self._weights(feature_rows("X", X)))

    def _learn_weights(self, old: FloatArray, new: FloatArray) -> None:
        both, recent = np.concatenate([old, new]), np.repeat([0, 1], [len(old), len(new)])
        self.mean_, scale = both.mean(axis=0), both.std(axis=0)
        self.scale_ = np.where(scale > 0, scale, 1.0)
        regression = LogisticRegression(C=1 / self.penalty, max_iter=1000).fit(
            (both - self.mean_) / self.scale_, recent
        )
        self.coef_ = regression.coef_[0]
        # The odds carry the sizes of the two samples; the ratio of the densities does not.
        self.intercept_ = float(regression.intercept_[0] - np.log(len(new) / len(old)))

    def _weights(self, features: FloatArray) -> FloatArray:
        """Summed row by row, since the rounding of a product depends on the batch."""
        log_weights = ((features - self.mean_) / self.scale_ * self.coef_).sum(axis=1) + self.intercept_
        return np.exp(np.minimum(log_weights, _LARGEST_LOG_WEIGHT))
