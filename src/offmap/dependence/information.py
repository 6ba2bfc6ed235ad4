"""Mutual information and total correlation of arrays, with an interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from offmap import parameters
from offmap.dependence import auto
from offmap.dependence.decomposition import terms
from offmap.dependence.estimate import Estimate, Unit
from offmap.dependence.estimator import Bound
from offmap.dependence.fitting import Training, evaluate, fit, split
from offmap.dependence.interval import Interval, Revalue, bootstrap_interval, count_splits, halves_interval
from offmap.dependence.nearest_neighbors import on_rows
from offmap.dependence.registry import CONTINUOUS, DISTANCES, NEIGHBORS, NONPARAMETRIC, check_name, check_settings
from offmap.dependence.ties import warn_of_outliers, warn_of_ties
from offmap.dependence.total_correlation_module import TotalCorrelation
from offmap.dependence.validation import (
    FloatArray,
    break_ties,
    check_variables,
    log_scale,
    name_columns,
    name_variables,
    ranks,
    standardise,
    varying_columns,
)
from offmap.parameters import Natural
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
    """Estimates the mutual information of two variables, with a 95 % interval.

    Columns are ranked first for "auto" and "gaussian_copula", and standardised for the others. Those that measure
    distances warn if a few values lie so far out that the others fall together. A nonparametric estimator uses all
    rows. A network is trained on one part of the
    rows, stopped by a second and evaluated on a third.

    Args:
        x: Array of shape ``(n,)`` or ``(n, d)``.
        y: Array with the same number of rows.
        estimator: "auto" picks by the number of rows and columns, and by ties. Nonparametric: "ksg", "ksg_improved",
            "mixed_ksg", "kde", "gaussian", "gaussian_copula". Networks: "js", "smile", "mine", "nwj", "infonce", "ba",
            "club", "club_mean". Those that take columns as continuous warn where many rows share a value.
        unit: "nats" or "bits".
        random_state: Seed; with the same seed, the same rows give the same estimate.
        training: How a network is trained; for long or short training, or other learning rates.
        settings: Settings of the estimator, such as ``n_neighbors`` for "ksg" or ``hidden`` for "js". The ``entropy``
            of "ba" is that of ``y`` as it is given, in nats.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, noise = rng.normal(size=(2, 1000))
        >>> print(mutual_information(x, x + noise, unit="bits", random_state=0))
        0.50... bits (0.4... to 0.5...) by ksg (2 columns)
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
        0.3... nats (0.2... to 0.4...) by ksg
    """
    if "entropy" in settings:
        raise ValueError("total_correlation takes no entropy, as each term has its own; use mutual_information")
    request = _Request(estimator, decomposition, training or Training(), settings)
    return request.estimate(name_variables(variables), unit, random_state)


@dataclass(frozen=True)
class _Answer:
    """The contributions of the rows; ``revalue`` and ``work`` are those of nearest-neighbour estimators."""

    pointwise: FloatArray
    estimator: str
    bound: Bound | None = None
    reason: str = ""
    revalue: Revalue | None = None
    work: int = 0

    def interval(self, rng: np.random.Generator) -> Interval:
        if self.revalue is None:
            return bootstrap_interval(self.pointwise, rng)
        value, rows = float(self.pointwise.mean()), len(self.pointwise)
        least = float(self.pointwise.std()) / math.sqrt(rows)
        return halves_interval(value, self.revalue, rows, count_splits(self.work), rng, least)


@dataclass(frozen=True)
class _Request:
    """What is to be estimated, and how."""

    estimator: str
    decomposition: str
    training: Training
    settings: dict[str, Any]

    def estimate(self, named: dict[str, ArrayLike], unit: Unit, random_state: RandomState) -> Estimate:
        self._check()
        parameters.require("random_state", random_state, Natural | np.random.RandomState | np.random.Generator | None)
        checked = dict(zip(named, check_variables([*named], [*named.values()]), strict=True))
        raw = {name: varying_columns(name, rows) for name, rows in checked.items()}
        if self.estimator in CONTINUOUS:
            warn_of_ties(raw, self.estimator, stacklevel=4)
        names = [name_columns(name, rows) for name, rows in checked.items()]
        rng = as_generator(random_state)
        with local_seed(draw_seed(rng)):
            answer = self._in_standard_units(checked)._answer(raw, names, rng)
        interval = answer.interval(rng)
        value, rows = float(answer.pointwise.mean()), len(answer.pointwise)
        found = Estimate(value, interval, answer.estimator, answer.bound, "nats", rows, answer.reason)
        return found.to_unit(unit)

    def _check(self) -> None:
        parameters.require("training", self.training, Training)
        check_name(self.estimator, "auto")
        if self.estimator != "auto":
            check_settings(self.estimator, self.settings)
        elif self.settings:
            raise ValueError(f"estimator 'auto' takes no settings; got {', '.join(self.settings)}")
        if self.decomposition == "direct" and self.estimator not in NONPARAMETRIC:
            raise ValueError(f"decomposition must be 'tree' or 'line' for estimator {self.estimator!r}; got 'direct'")

    def _in_standard_units(self, checked: dict[str, FloatArray]) -> "_Request":
        """The same request, with the entropy of the last variable turned into that of its standardised columns."""
        if self.settings.get("entropy") is None:
            return self
        parameters.require("entropy", self.settings["entropy"], float)
        entropy = self.settings["entropy"] - log_scale([*checked.values()][-1])
        return replace(self, settings=self.settings | {"entropy": entropy})

    def _answer(self, raw: dict[str, FloatArray], names: list[list[str]], rng: np.random.Generator) -> _Answer:
        columns = [*raw.values()]
        if self.estimator == "auto":
            return self._automatic(columns, ranks(columns, rng), names)
        # Only ranks count, and they must not depend on how far away an outlier is.
        if self.estimator == auto.COPULA:
            return self._nonparametric(ranks(columns, rng))
        variables = dict(zip(raw, standardise([*raw], columns), strict=True))
        if self.estimator in DISTANCES:
            warn_of_outliers(raw, variables, self.estimator, stacklevel=5)
        standard = [*variables.values()]
        if self.estimator in NONPARAMETRIC:
            return self._nonparametric(standard if self.estimator == auto.MIXED else break_ties(standard, rng))
        return self._network(standard)

    def _nonparametric(self, variables: list[FloatArray]) -> _Answer:
        function, summands = NONPARAMETRIC[self.estimator], self._groups(variables)
        pointwise = np.sum([function(groups, **self.settings) for groups in summands], axis=0)
        if self.estimator not in NEIGHBORS:
            return _Answer(pointwise, self.estimator)
        parts = [on_rows(function, groups, **self.settings) for groups in summands]
        work = sum(len(pointwise) * sum(group.shape[1] for group in groups) ** 2 for groups in summands)
        return _Answer(pointwise, self.estimator, revalue=lambda rows: sum(part(rows) for part in parts), work=work)

    def _automatic(self, tied: list[FloatArray], variables: list[FloatArray], names: list[list[str]]) -> _Answer:
        groups, groups_tied = self._groups(variables), self._groups(tied)
        sides = self._sides(len(tied))
        named = [[[name for place in side for name in names[place]] for side in both] for both in sides]
        picks = auto.pick([auto.Task(*parts) for parts in zip(groups, groups_tied, named, strict=True)], self.training)
        name, reason = auto.summary(picks)
        pointwise = np.sum([found.pointwise for found in picks], axis=0)
        if not any(found.revalue for found in picks):
            return _Answer(pointwise, name, reason=reason)
        work = sum(len(pointwise) * found.columns**2 for found in picks)
        return _Answer(pointwise, name, None, reason, lambda rows: sum(found.on(rows) for found in picks), work)

    def _network(self, variables: list[FloatArray]) -> _Answer:
        parts = split(variables, self.training.held_out)
        widths = [variable.shape[1] for variable in variables]
        model = TotalCorrelation(widths, decomposition=self.decomposition, estimator=self.estimator, **self.settings)
        fit(model, parts, self.training)
        return _Answer(evaluate(model, parts.evaluation, self.training.batch_size), self.estimator, model.bound)

    def _sides(self, variables: int) -> list[Sequence[range]]:
        """The positions of the variables of each group of each term of the sum."""
        if self.decomposition == "direct":
            return [[range(place, place + 1) for place in range(variables)]]
        return [*terms(self.decomposition, variables)]

    def _groups(self, variables: list[FloatArray]) -> list[list[FloatArray]]:
        """The groups of variables of each term of the sum."""
        sides = self._sides(len(variables))
        return [[np.hstack([variables[place] for place in side]) for side in both] for both in sides]
