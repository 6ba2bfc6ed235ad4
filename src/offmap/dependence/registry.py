"""The estimators of mutual information by name."""

from collections.abc import Callable
from functools import partial

from offmap.dependence.covariance import gaussian_copula_pointwise, gaussian_pointwise
from offmap.dependence.donsker_varadhan import MINE, SMILE
from offmap.dependence.estimator import Estimator
from offmap.dependence.infonce import InfoNCE
from offmap.dependence.js import JS
from offmap.dependence.kernel import kde_pointwise
from offmap.dependence.neighbours import ksg_improved_pointwise, ksg_pointwise
from offmap.dependence.nwj import NWJ
from offmap.dependence.sample import Pointwise, SampleEstimator
from offmap.dependence.variational import BA, CLUB, CLUBMean

NETWORKS: dict[str, Callable[..., Estimator]] = {
    "ba": BA,
    "mine": MINE,
    "nwj": NWJ,
    "infonce": InfoNCE,
    "club": CLUB,
    "club-mean": CLUBMean,
    "js": JS,
    "smile": SMILE,
}
SAMPLES: dict[str, Pointwise] = {
    "ksg": ksg_pointwise,
    "ksg-improved": ksg_improved_pointwise,
    "kde": kde_pointwise,
    "gaussian": gaussian_pointwise,
    "gaussian-copula": gaussian_copula_pointwise,
}


def estimator_class(name: str) -> Callable[..., Estimator]:
    """What makes the estimator called ``name`` from its widths."""
    require_known(name)
    return NETWORKS[name] if name in NETWORKS else partial(SampleEstimator, SAMPLES[name])


def require_known(name: str, *others: str) -> None:
    """Raises a ``ValueError`` if no estimator, nor any of ``others``, is called ``name``."""
    known = (*others, *NETWORKS, *SAMPLES)
    if name not in known:
        raise ValueError(f"estimator must be among {', '.join(map(repr, known))}; got {name!r}")
