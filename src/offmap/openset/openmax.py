"""OpenMax."""

from dataclasses import dataclass
from math import exp, pi, sqrt
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import weibull_min
from torch import Tensor
from torch.nn.functional import normalize

from offmap.base import Classification
from offmap.calibration import FloatArray
from offmap.openset.closed import ClosedSetClassifier
from offmap.openset.negatives import class_means
from offmap.parameters import Count

Distance = Literal["euclidean", "cosine"]

# Shortest distance that counts (a shorter one is rounding), and smallest spread of log-distances that a Weibull
# distribution is fitted to: narrower tails are steps.
_SHORTEST, _NARROWEST = 1e-5, 1e-3


@dataclass(kw_only=True, eq=False, repr=False)
class OpenMaxClassifier(ClosedSetClassifier):
    r"""Takes from each logit what the row's distance to that class makes doubtful, and gives it to an open class.

    With $F_k$ the Weibull distribution of the largest distances of a class to its mean logits $\mu_k$, and $r_k$ the
    rank of logit $v_k$ (0 for the largest),

    $$\hat v_k = v_k \bigl(1 - \max(0, 1 - r_k / \alpha) F_k(\lVert v - \mu_k \rVert)\bigr), \qquad
    \hat v_{\text{open}} = \sum_k (v_k - \hat v_k),$$

    and $p$ is the softmax of all $\hat v$. The novelty is $1 - \max_k p_k$ over the known classes; its own rule
    rejects above 0.5, which is where the open class wins or no class reaches one half.

    Args:
        tail: How many of the largest distances of a class its Weibull distribution is fitted to.
        top: $\alpha$, how many of the largest logits are recalibrated (all, if there are fewer classes).
        distance: Between logits and the mean of a class.

    Only rows that the network classifies rightly count for a class, or all if it gets none right. A class of fewer
    than three such rows has no spread of its own to fit, and takes the distances of all classes.

    Reference: Bendale and Boult, Towards Open Set Deep Networks, arXiv:1511.06233, algorithms 1 and 2.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = OpenMaxClassifier(random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3]])
        array([0, 1])
    """

    own_threshold: ClassVar[float | None] = 0.5

    rule: Literal["calibrated", "own"] = "own"
    tail: Count = 20
    top: Count = 10
    distance: Distance = "euclidean"

    def _fit(self, X: Tensor, y: Tensor) -> None:
        self._fit_closed(X, y)
        with torch.no_grad():
            logits = self.network_(X).double()
        trusted = rightly_classified(logits, y)
        logits, y = logits[trusted], y[trusted]
        means = class_means(logits, y, len(self.classes_))
        own = distances(logits, means, self.distance).gather(1, y[:, None]).squeeze(1)
        self.mean_logits_ = means.cpu().numpy()
        self.weibulls_ = fit_weibulls(own.cpu().numpy(), y.cpu().numpy(), len(self.classes_), self.tail)

    def _classify(self, X: Tensor) -> Classification:
        logits = self.network_(X).double()
        means, weibulls = (torch.from_numpy(a).to(self.device) for a in (self.mean_logits_, self.weibulls_))
        shape, scale = weibulls.T
        far = weibull_cdf(distances(logits, means, self.distance), shape, scale)
        recalibrated = recalibrate(logits, far, self.top)
        proba = recalibrated.softmax(dim=1)[:, :-1]
        return Classification(recalibrated[:, :-1].softmax(dim=1), 1 - proba.amax(dim=1))


def rightly_classified(logits: Tensor, codes: Tensor) -> Tensor:
    """Which rows have the largest logit at their own class; all rows of a class that has no such row."""
    right = logits.argmax(dim=1) == codes
    found = torch.bincount(codes[right], minlength=logits.shape[1]) > 0
    return right | ~found[codes]


def distances(logits: Tensor, means: Tensor, kind: Distance) -> Tensor:
    """The distance of every row to the mean of every class."""
    if kind == "cosine":
        return (1 - normalize(logits, dim=1) @ normalize(means, dim=1).T).clamp(min=0)
    # Products of matrices would lose the small distances to rounding.
    return torch.cdist(logits, means, compute_mode="donot_use_mm_for_euclid_dist")


def recalibrate(logits: Tensor, far: Tensor, top: int) -> Tensor:
    """The logits of the known classes as OpenMax changes them, and last the one of the open class.

    Args:
        logits: One row of logits each.
        far: How surely each row lies outside each class, from 0 to 1.
        top: How many of the largest logits change.
    """
    rank = logits.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    weight = (1 - rank.to(logits) / min(top, logits.shape[1])).clamp(min=0)
    kept = logits * (1 - weight * far)
    return torch.cat([kept, (logits - kept).sum(dim=1, keepdim=True)], dim=1)


def weibull_cdf(distance: Tensor, shape: Tensor, scale: Tensor) -> Tensor:
    r"""$F(d) = 1 - \exp(-(d / \lambda)^\kappa)$."""
    return -torch.expm1(-((distance / scale) ** shape))


def fit_weibulls(own: FloatArray, codes: NDArray[np.int64], classes: int, tail: int) -> FloatArray:
    """Shape and scale, one row a class, of the Weibull distributions of the ``tail`` largest distances.

    Args:
        own: Distance of each row to the mean of its own class.
        codes: The class of each row.
        classes: How many there are.
        tail: How many distances of each class count.
    """
    farthest_first = np.argsort(-own)
    own, codes = own[farthest_first], codes[farthest_first]
    spread_out = np.bincount(codes, minlength=classes) >= 3
    return np.array([_fit_weibull(own[codes == k][:tail] if spread_out[k] else own[:tail]) for k in range(classes)])


def _fit_weibull(lengths: FloatArray) -> tuple[float, float]:
    """Shape and scale at the maximum of the likelihood, with the location fixed at 0, the floor of a distance."""
    lengths = np.maximum(lengths, _SHORTEST)
    logs = np.log(lengths)
    # The moments of the logarithm: a good place to start, and the answer where the likelihood has no maximum.
    shape = pi / (sqrt(6) * max(logs.std(), _NARROWEST))
    scale = exp(logs.mean() + np.euler_gamma / shape)
    if logs.std() > _NARROWEST:
        shape, _, scale = weibull_min.fit(lengths, shape, scale=scale, floc=0)
    return shape, scale
