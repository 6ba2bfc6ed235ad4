"""The plain calls: arrays in, an estimate with its interval out."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from offmap.dependence import auto
from offmap.dependence.decomposition import terms
from offmap.dependence.door import FloatArray, check_variables, jittered, standardised
from offmap.dependence.estimate import Estimate, Unit, bootstrap_interval
from offmap.dependence.estimator import Bound
from offmap.dependence.fitting import Training, fit, split, valued
from offmap.dependence.registry import SAMPLES, require_known
from offmap.dependence.summed import TotalCorrelation
from offmap.random_state import local_seed

Answer = tuple[FloatArray, str, Bound | None, str]


def mutual_information(
    x: ArrayLike,
    y: ArrayLike,
    estimator: str = "auto",
    *,
    unit: Unit = "nats",
    random_state: int | np.random.Generator | None = None,
    training: Training | None = None,
    **settings: Any,
) -> Estimate:
    """Estimates how much two variables share, on standardised columns.

    A network learns from one part of the rows, stops by another and is read on a third; an estimator of samples takes
    all rows. The interval is a bootstrap of what the rows add to the value.

    Args:
        x: ``(n,)`` or ``(n, d)``.
        y: As many rows.
        estimator: "auto" picks by rows and columns and says what it picked. Of samples: "ksg", "ksg-improved", "kde",
            "gaussian" and "gaussian-copula"; networks: "js", "smile", "mine", "nwj", "infonce", "ba", "club" and
            "club-mean".
        unit: "nats" or "bits".
        random_state: Seed; with one, the same rows give the same estimate.
        training: How a network is fitted.
        settings: Given to the estimator, such as ``k`` or ``hidden``.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, noise = rng.normal(size=(2, 1000))
        >>> print(mutual_information(x, x + noise, unit="bits", random_state=0))
        0.50... bits (0.43... to 0.59...) by ksg (2 columns)
    """
    return _estimate(("x", "y"), (x, y), "tree", estimator, unit, random_state, training, settings)


def total_correlation(
    variables: Sequence[ArrayLike],
    estimator: str = "auto",
    *,
    decomposition: Literal["tree", "line", "direct"] = "tree",
    unit: Unit = "nats",
    random_state: int | np.random.Generator | None = None,
    training: Training | None = None,
    **settings: Any,
) -> Estimate:
    """Estimates how much several variables share, as a sum of mutual informations between groups of them.

    Args:
        variables: Each ``(n,)`` or ``(n, d)``, of as many rows; widths may differ.
        estimator: Of each mutual information, as in ``mutual_information``.
        decomposition: "tree" splits the variables in halves, "line" takes in one after another; "direct" takes all at
            once, which the estimators of samples can.
        unit: "nats" or "bits".
        random_state: Seed; with one, the same rows give the same estimate.
        training: How a network is fitted.
        settings: Given to the estimator, such as ``k`` or ``hidden``.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, noise, other = rng.normal(size=(3, 1000))
        >>> print(total_correlation([x, x + noise, other], estimator="gaussian-copula", random_state=0))
        0.3... nats (0.3... to 0.3...) by gaussian-copula
    """
    if not isinstance(variables, list | tuple):
        raise ValueError(
            f"variables must be a list of arrays, one a variable, not {type(variables).__name__}; list(X.T) makes "
            "one of the columns of a matrix X, and [frame[name] for name in frame] of a frame"
        )
    if len(variables) < 2:
        raise ValueError(f"variables must be at least 2; got {len(variables)}")
    names = [f"variables[{place}]" for place in range(len(variables))]
    return _estimate(names, variables, decomposition, estimator, unit, random_state, training, settings)


def _estimate(
    names: Sequence[str],
    values: Sequence[ArrayLike],
    decomposition: str,
    estimator: str,
    unit: Unit,
    random_state: int | np.random.Generator | None,
    training: Training | None,
    settings: dict[str, Any],
) -> Estimate:
    require_known(estimator, "auto")
    variables = standardised(names, check_variables(names, values))
    rng, training = np.random.default_rng(random_state), training or Training()
    with local_seed(int(rng.integers(2**31))):
        if estimator in SAMPLES:
            answer = _sampled(jittered(variables, rng), decomposition, estimator, settings)
        elif estimator == "auto":
            answer = _picked(jittered(variables, rng), decomposition, training, settings)
        else:
            answer = _learnt(variables, decomposition, estimator, training, settings)
    pointwise, name, bound, reason = answer
    interval = bootstrap_interval(pointwise, rng)
    found = Estimate(float(pointwise.mean()), interval, name, bound, "nats", len(pointwise), reason)
    return found.within(unit)


def _groups(variables: Sequence[FloatArray], decomposition: str) -> list[list[FloatArray]]:
    """What each term of the sum is between."""
    if decomposition == "direct":
        return [list(variables)]
    sides = terms(decomposition, len(variables))
    return [[np.hstack([variables[place] for place in side]) for side in both] for both in sides]


def _sampled(variables: Sequence[FloatArray], decomposition: str, name: str, settings: dict[str, Any]) -> Answer:
    found = [SAMPLES[name](groups, **settings) for groups in _groups(variables, decomposition)]
    return np.sum(found, axis=0), name, None, ""


def _picked(
    variables: Sequence[FloatArray], decomposition: str, training: Training, settings: dict[str, Any]
) -> Answer:
    if settings:
        raise ValueError(f"settings must not be given with estimator='auto'; got {', '.join(settings)}")
    _refuse_direct(decomposition, "auto")
    picks = [auto.pick(groups, training) for groups in _groups(variables, decomposition)]
    name, reason = auto.summary(picks)
    return np.sum([found.pointwise for found in picks], axis=0), name, None, reason


def _learnt(
    variables: Sequence[FloatArray], decomposition: str, name: str, training: Training, settings: dict[str, Any]
) -> Answer:
    _refuse_direct(decomposition, name)
    parts = split(variables, training.held_out)
    widths = [variable.shape[1] for variable in variables]
    model = TotalCorrelation(widths, decomposition=decomposition, estimator=name, **settings)
    fit(model, parts, training)
    return valued(model, parts.valued, training.batch_size), name, model.bound, ""


def _refuse_direct(decomposition: str, name: str) -> None:
    if decomposition == "direct":
        raise ValueError(f"decomposition must be 'tree' or 'line' for {name!r}; got 'direct'")
