"""OpenMax."""

from dataclasses import dataclass
from math import exp, pi, sqrt
from typing import ClassVar, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import weibull_min
from torch import Tensor
from torch.nn.functional import normalize

from offmap.calibration.classifier_contract import Classification
from offmap.class_statistics import class_means
from offmap.openset.closed_set import ClosedSetClassifier
from offmap.parameters import Count

Distance = Literal["euclidean", "cosine"]
FloatArray = NDArray[np.float64]

# Distances below the first are rounding errors. A tail whose log distances spread less than the second is a step
# function, to which no Weibull distribution can be fitted.
_SHORTEST, _NARROWEST = 1e-5, 1e-3


@final
@dataclass(kw_only=True, eq=False, repr=False)
class OpenMaxClassifier(ClosedSetClassifier):
    r"""Rejects a row when an extra open class wins, whose logit grows with the distance from the means of the classes.

    With $F_k$ the Weibull distribution of the largest distances of a class to its mean logits $\mu_k$, and $r_k$ the
    rank of logit $v_k$ (0 for the largest),

    $$\hat v_k = v_k \bigl(1 - \max(0, 1 - r_k / \alpha) F_k(\lVert v - \mu_k \rVert)\bigr), \qquad
    \hat v_{\text{open}} = \sum_k (v_k - \hat v_k),$$

    and $p$ is the softmax of all $\hat v$. The novelty is $1 - \max_k p_k$ over the known classes. The paper's own rule
    (``rule="own"``) rejects above 0.5, where the open class wins or no class reaches one half.

    Only correctly classified rows count for a class, or all of its rows if none is. A class with fewer than three such
    rows uses the distances of all classes.

    Args:
        tail_size: How many of the largest distances of a class its Weibull distribution is fitted to.
        top_k: How many of the largest logits are revised, $\alpha$; all of them if there are fewer classes.
        distance: Distance between the logits of a row and the mean logits of a class.

    Attributes:
        network_: The trained classifier.
        mean_logits_: Mean logits $\mu_k$ of each class, in the order of ``classes_``.
        weibulls_: Shape and scale of the Weibull distribution of each class.

    Reference: Bendale and Boult, Towards Open Set Deep Networks, arXiv:1511.06233, algorithms 1 and 2.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = OpenMaxClassifier(calibration=0.3, random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3]])
        array([0, 1])
    """

    own_threshold: ClassVar[float | None] = 0.5

    tail_size: Count = 20
    top_k: Count = 10
    distance: Distance = "euclidean"

    def _build(self) -> None:
        self.network_ = self._new_network()

    def _fit(self, X: Tensor, y: Tensor) -> None:
        self._fit_closed(X, y)
        with torch.no_grad():
            logits = self.network_(X).double()
        trusted = correctly_classified(logits, y)
        logits, y = logits[trusted], y[trusted]
        means = class_means(logits, y, len(self.classes_))
        own = distances(logits, means, self.distance).gather(1, y[:, None]).squeeze(1)
        self.mean_logits_ = means.cpu().numpy()
        self.weibulls_ = fit_weibulls(own.cpu().numpy(), y.cpu().numpy(), len(self.classes_), self.tail_size)

    def _classify(self, X: Tensor) -> Classification:
        logits = self.network_(X).double()
        means, weibulls = (torch.from_numpy(a).to(self.device) for a in (self.mean_logits_, self.weibulls_))
        shape, scale = weibulls.T
        far = weibull_cdf(distances(logits, means, self.distance), shape, scale)
        revised = revise(logits, far, self.top_k)
        proba = revised.softmax(dim=1)[:, :-1]
        return Classification(revised[:, :-1].softmax(dim=1), 1 - proba.amax(dim=1))


def correctly_classified(logits: Tensor, codes: Tensor) -> Tensor:
    """Returns which rows have the largest logit at their own class; all rows of a class without such a row."""
    right = logits.argmax(dim=1) == codes
    found = torch.bincount(codes[right], minlength=logits.shape[1]) > 0
    return right | ~found[codes]


def distances(logits: Tensor, means: Tensor, kind: Distance) -> Tensor:
    """Returns the distance of every row to the mean of every class."""
    if kind == "cosine":
        return (1 - normalize(logits, dim=1) @ normalize(means, dim=1).T).clamp(min=0)
    # A matrix product would lose small distances to rounding.
    return torch.cdist(logits, means, compute_mode="donot_use_mm_for_euclid_dist")


def revise(logits: Tensor, far: Tensor, top_k: int) -> Tensor:
    """Returns the revised logits of the known classes and, last, the logit of the open class.

    Args:
        logits: One row of logits per row.
        far: Probability that each row lies outside each class.
        top_k: How many of the largest logits are revised.
    """
    rank = logits.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    weight = (1 - rank.to(logits) / min(top_k, logits.shape[1])).clamp(min=0)
    kept = logits * (1 - weight * far)
    return torch.cat([kept, (logits - kept).sum(dim=1, keepdim=True)], dim=1)


def weibull_cdf(distance: Tensor, shape: Tensor, scale: Tensor) -> Tensor:
    r"""$F(d) = 1 - \exp(-(d / \lambda)^\kappa)$."""
    return -torch.expm1(-((distance / scale) ** shape))


def fit_weibulls(own: FloatArray, codes: NDArray[np.int64], classes: int, tail_size: int) -> FloatArray:
    """Returns shape and scale of the Weibull distribution of the ``tail_size`` largest distances, one row per class.

    Args:
        own: Distance of each row to the mean of its own class.
        codes: The class of each row.
        classes: Number of classes.
        tail_size: How many of the largest distances of each class count.
    """
    farthest_first = np.argsort(-own)
    own, codes = own[farthest_first], codes[farthest_first]
    enough = np.bincount(codes, minlength=classes) >= 3
    return np.array(
        [_fit_weibull(own[codes == k][:tail_size] if enough[k] else own[:tail_size]) for k in range(classes)]
    )


def _fit_weibull(lengths: FloatArray) -> tuple[float, float]:
    """Returns shape and scale of maximum likelihood, with the location fixed at 0."""
    lengths = np.maximum(lengths, _SHORTEST)
    logs = np.log(lengths)
    # The moments of the logarithm: a good start, and the answer where the likelihood has no maximum.
    shape = pi / (sqrt(6) * max(logs.std(), _NARROWEST))
    scale = exp(logs.mean() + np.euler_gamma / shape)
    if logs.std() > _NARROWEST:
        shape, _, scale = weibull_min.fit(lengths, shape, scale=scale, floc=0)
    return shape, scale
