"""Mutual information and total correlation of arrays, with an interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from offmap.dependence import auto
from offmap.dependence.decomposition import terms
from offmap.dependence.estimate import Estimate, Unit, bootstrap_interval
from offmap.dependence.estimator import Bound
from offmap.dependence.fitting import Training, evaluate, fit, split
from offmap.dependence.registry import NONPARAMETRIC, check_name, check_settings
from offmap.dependence.total_correlation_module import TotalCorrelation
from offmap.dependence.validation import FloatArray, break_ties, check_variables, name_variables, standardise
from offmap.random_state import RandomState, as_generator, draw_seed, local_seed


def mutual_information(
    x: ArrayLike,
    y: ArrayLike,
    estimator: str = "auto",
    *,
    unit: Unit = "nats",
    random_state: RandomState = None,
    training: Training | None = None,
    **settings: Any,
) -> Estimate:
    """Estimates the mutual information of two variables, with a bootstrap interval.

    Columns are standardised first. A nonparametric estimator uses all rows. A network is trained on one part of the
    rows, stopped by a second and evaluated on a third.

    Args:
        x: Array of shape ``(n,)`` or ``(n, d)``.
        y: Array with the same number of rows.
        estimator: "auto" picks by the number of rows and columns. Nonparametric: "ksg", "ksg_improved", "kde",
            "gaussian", "gaussian_copula". Networks: "js", "smile", "mine", "nwj", "infonce", "ba", "club", "club_mean".
        unit: "nats" or "bits".
        random_state: Seed; with the same seed, the same rows give the same estimate.
        training: How a network is trained; for long or short training, or other learning rates.
        settings: Settings of the estimator, such as ``n_neighbors`` for "ksg" or ``hidden`` for "js".

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, noise = rng.normal(size=(2, 1000))
        >>> print(mutual_information(x, x + noise, unit="bits", random_state=0))
        0.50... bits (0.43... to 0.59...) by ksg (2 columns)
    """
    request = _Request(estimator, "tree", training or Training(), settings)
    return request.estimate({"x": x, "y": y}, unit, random_state)


def total_correlation(
    variables: Sequence[ArrayLike] | NDArray[Any] | pd.DataFrame,
    estimator: str = "auto",
    *,
    decomposition: str = "tree",
    unit: Unit = "nats",
    random_state: RandomState = None,
    training: Training | None = None,
    **settings: Any,
) -> Estimate:
    """Estimates the total correlation of several variables as a sum of mutual informations between groups of them.

    Args:
        variables: A list of arrays of shape ``(n,)`` or ``(n, d)``, whose widths may differ; or a matrix or DataFrame,
            whose columns are the variables.
        estimator: Estimator of each mutual information, as in ``mutual_information``.
        decomposition: "tree" splits the variables into halves, "line" adds one at a time, "direct" takes all at once,
            which only nonparametric estimators can.
        unit: "nats" or "bits".
        random_state: Seed; with the same seed, the same rows give the same estimate.
        training: How networks are trained.
        settings: Settings of the estimator, such as ``n_neighbors`` for "ksg" or ``hidden`` for "js".

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, noise, other = rng.normal(size=(3, 1000))
        >>> print(total_correlation([x, x + noise, other], estimator="gaussian_copula", random_state=0))
        0.3... nats (0.3... to 0.3...) by gaussian_copula
        >>> print(total_correlation(np.column_stack([x, x + noise]), "ksg", random_state=0))
        0.3... nats (0.3... to 0.4...) by ksg
    """
    request = _Request(estimator, decomposition, training or Training(), settings)
    return request.estimate(name_variables(variables), unit, random_state)


@dataclass(frozen=True)
class _Answer:
    pointwise: FloatArray
    estimator: str
    bound: Bound | None = None
    reason: str = ""


@dataclass(frozen=True)
class _Request:
    """What is to be estimated, and how."""

    estimator: str
    decomposition: str
    training: Training
    settings: dict[str, Any]

    def estimate(self, named: dict[str, ArrayLike], unit: Unit, random_state: RandomState) -> Estimate:
        self._check()
        names = [*named]
        variables = standardise(names, check_variables(names, [*named.values()]))
        rng = as_generator(random_state)
        with local_seed(draw_seed(rng)):
            answer = self._answer(variables, rng)
        interval = bootstrap_interval(answer.pointwise, rng)
        value, rows = float(answer.pointwise.mean()), len(answer.pointwise)
        found = Estimate(value, interval, answer.estimator, answer.bound, "nats", rows, answer.reason)
        return found.to_unit(unit)

    def _check(self) -> None:
        check_name(self.estimator, "auto")
        if self.estimator != "auto":
            check_settings(self.estimator, self.settings)
        elif self.settings:
            raise ValueError(f"estimator 'auto' takes no settings; got {', '.join(self.settings)}")
        if self.decomposition == "direct" and self.estimator not in NONPARAMETRIC:
            raise ValueError(f"decomposition must be 'tree' or 'line' for estimator {self.estimator!r}; got 'direct'")

    def _answer(self, variables: list[FloatArray], rng: np.random.Generator) -> _Answer:
        if self.estimator in NONPARAMETRIC:
            return self._nonparametric(break_ties(variables, rng))
        if self.estimator == "auto":
            return self._automatic(break_ties(variables, rng))
        return self._network(variables)

    def _nonparametric(self, variables: list[FloatArray]) -> _Answer:
        function = NONPARAMETRIC[self.estimator]
        found = [function(groups, **self.settings) for groups in self._groups(variables)]
        return _Answer(np.sum(found, axis=0), self.estimator)

    def _automatic(self, variables: list[FloatArray]) -> _Answer:
        picks = auto.pick(self._groups(variables), self.training)
        name, reason = auto.summary(picks)
        return _Answer(np.sum([found.pointwise for found in picks], axis=0), name, reason=reason)

    def _network(self, variables: list[FloatArray]) -> _Answer:
        parts = split(variables, self.training.held_out)
        widths = [variable.shape[1] for variable in variables]
        model = TotalCorrelation(widths, decomposition=self.decomposition, estimator=self.estimator, **self.settings)
        fit(model, parts, self.training)
        return _Answer(evaluate(model, parts.evaluation, self.training.batch_size), self.estimator, model.bound)

    def _groups(self, variables: list[FloatArray]) -> list[list[FloatArray]]:
        """The groups of variables of each term of the sum."""
        if self.decomposition == "direct":
            return [variables]
        sides = terms(self.decomposition, len(variables))
        return [[np.hstack([variables[place] for place in side]) for side in both] for both in sides]
