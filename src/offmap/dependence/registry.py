"""The estimators of mutual information by name."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial

from offmap.dependence.covariance import gaussian_copula_pointwise, gaussian_pointwise
from offmap.dependence.donsker_varadhan import MINE, SMILE
from offmap.dependence.estimator import Estimator
from offmap.dependence.infonce import InfoNCE
from offmap.dependence.js import JS
from offmap.dependence.kernel import kde_pointwise
from offmap.dependence.nearest_neighbors import ksg_improved_pointwise, ksg_pointwise, mixed_ksg_pointwise
from offmap.dependence.nonparametric import NonparametricEstimator, Pointwise
from offmap.dependence.nwj import NWJ
from offmap.dependence.variational import BA, CLUB, CLUBMean

NETWORKS: dict[str, Callable[..., Estimator]] = {
    "ba": BA,
    "mine": MINE,
    "nwj": NWJ,
    "infonce": InfoNCE,
    "club": CLUB,
    "club_mean": CLUBMean,
    "js": JS,
    "smile": SMILE,
}
NONPARAMETRIC: dict[str, Pointwise] = {
    "ksg": ksg_pointwise,
    "ksg_improved": ksg_improved_pointwise,
    "mixed_ksg": mixed_ksg_pointwise,
    "kde": kde_pointwise,
    "gaussian": gaussian_pointwise,
    "gaussian_copula": gaussian_copula_pointwise,
}
# Those whose contributions depend on neighbouring rows.
NEIGHBORS = ("ksg", "ksg_improved", "mixed_ksg")
# Those that compare distances between rows, which far outliers make vanish.
DISTANCES = (*NEIGHBORS, "kde")
# Those that need densities, which columns with ties do not have.
CONTINUOUS = ("ksg", "ksg_improved", "kde", "gaussian", "gaussian_copula", "ba")
# What the two kinds take beside their settings.
_DATA = {"x_width", "y_width", "variables"}


def estimator_class(name: str) -> Callable[..., Estimator]:
    """Returns the callable that makes the estimator called ``name`` from its widths."""
    check_name(name)
    return NETWORKS[name] if name in NETWORKS else partial(NonparametricEstimator, NONPARAMETRIC[name])


def check_name(name: str, *others: str) -> None:
    """Raises a ``ValueError`` unless ``name`` is an estimator or one of ``others``."""
    known = (*others, *NETWORKS, *NONPARAMETRIC)
    if name not in known:
        raise ValueError(f"estimator must be one of {', '.join(map(repr, known))}; got {name!r}")


def check_settings(name: str, settings: Mapping[str, object]) -> None:
    """Raises a ``ValueError`` that names the first setting that the estimator called ``name`` does not have.

    Example:
        >>> check_settings("ksg", {"hidden": 3})
        Traceback (most recent call last):
            ...
        ValueError: estimator 'ksg' has no setting 'hidden'; it takes 'n_neighbors'
    """
    accepted = [*inspect.signature((NETWORKS | NONPARAMETRIC)[name]).parameters]
    takes = [repr(setting) for setting in accepted if setting not in _DATA]
    for setting in settings:
        if repr(setting) not in takes:
            words = f"takes {', '.join(takes)}" if takes else "takes no settings"
            raise ValueError(f"estimator {name!r} has no setting {setting!r}; it {words}")
