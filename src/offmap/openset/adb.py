"""Adaptive decision boundary."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.optim import Adam

from offmap.base import Classification
from offmap.calibration import FloatArray
from offmap.openset.closed import ClosedSetClassifier
from offmap.openset.negatives import class_means
from offmap.parameters import Fraction, NonNegative, Positive
from offmap.train import Batch, Batches, descend, train


@dataclass(kw_only=True, eq=False, repr=False)
class ADBClassifier(ClosedSetClassifier):
    r"""Puts a ball around the features of each class and rejects rows outside the ball of the nearest centre.

    With $d$ the distance of a row's features to the mean of the class, the radius $\Delta = \log(1 + e^\theta)$ of
    each class comes down

    $$L = \frac1n \sum_i \begin{cases} d_i - \Delta & d_i > \Delta \\ \Delta - d_i & \text{else.} \end{cases}$$

    That is $|d - \Delta|$ in the mean, and least at the *median* distance: of rows that look like those the radius was
    learned from, half would be rejected. The paper's radius is larger since dropout stays on while it is learned,
    which moves features away from their centre, and off when rows are judged; so it is here. Without dropout, set
    ``quantile``. The novelty is $d - \Delta$ at the nearest centre; its own rule rejects from 0 on. The probabilities
    of the known classes are the softmax of $-d$.

    Args:
        quantile: Share of the training rows of a class that its radius is to hold, measured without dropout (the
            radius of a class of one row is 0 then, and it is never answered); by default radii are learned.
        radius_lr: Step size of Adam for $\theta$.
        negatives: Weight of adaptive negatives, without the ascent, as one more class of the classifier; 0 for none.

    Reference: Zhang, Xu and Lin, Deep Open Intent Classification with Adaptive Decision Boundary, arXiv:2012.10209.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = ADBClassifier(random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [7.7, 2.8, 6.7, 2.0]])
        array([ 0,  1, -1])
    """

    own_threshold: ClassVar[float | None] = 0.0

    rule: Literal["calibrated", "own"] = "own"
    quantile: Fraction | None = None
    radius_lr: Positive = 0.05
    negatives: NonNegative = 0.0

    def _extra_classes(self) -> int:
        return int(self.negatives > 0)

    def _fit(self, X: Tensor, y: Tensor) -> None:
        self._fit_closed(X, y, negatives=self.negatives)
        with torch.no_grad():
            features = self.network_.features(X)
        centroids = class_means(features, y, len(self.classes_))
        if self.quantile is None:
            radii = self._learned_radii(features, y, centroids)
        else:
            distance = (features - centroids[y]).norm(dim=1)
            radii = class_quantiles(distance.cpu().numpy(), y.cpu().numpy(), self.quantile)
        self.centroids_, self.radii_ = centroids.cpu().numpy(), radii

    def _learned_radii(self, features: Tensor, y: Tensor, centroids: Tensor) -> FloatArray:
        def distance(rows: Tensor, codes: Tensor) -> Tensor:
            return (self.network_.dropout(rows) - centroids[codes]).norm(dim=1)

        def terms(batch: Batch) -> dict[str, Tensor]:
            rows, codes = batch
            return {"boundary": boundary_loss(distance(rows, codes), softplus(theta)[codes])}

        self.network_.train()
        # From the mean distance on there is little way left, whatever the scale of the features.
        start = class_means(distance(features, y)[:, None], y, len(centroids)).squeeze(1)
        theta = nn.Parameter(inverse_softplus(start))
        optimizer = Adam([theta], lr=self.radius_lr)
        self.history_ |= train(
            descend(optimizer, terms),
            Batches((features, y), self.batch_size),
            epochs=self.epochs,
            state={"network": self.network_, "optimizer": optimizer},
            label="decision boundary",
        )
        return softplus(theta.detach()).double().cpu().numpy()

    def _classify(self, X: Tensor) -> Classification:
        centroids, radii = (torch.from_numpy(a).to(self.device) for a in (self.centroids_, self.radii_))
        features = self.network_.features(X)
        # Products of matrices would lose the small distances to rounding.
        distance = torch.cdist(features, centroids, compute_mode="donot_use_mm_for_euclid_dist").double()
        nearest, at = distance.min(dim=1)
        # A row on the sphere is outside: just when its distance is above the number before the radius.
        inside = radii.nextafter(torch.full_like(radii, -torch.inf))
        return Classification((-distance).softmax(dim=1), nearest - inside[at])


def boundary_loss(distance: Tensor, radius: Tensor) -> Tensor:
    """How far, in the mean, rows lie from the sphere of their class, inside or outside."""
    return (distance - radius).abs().mean()


def inverse_softplus(value: Tensor) -> Tensor:
    """What softplus maps to ``value``, which counts as 1e-6 if it is less."""
    value = value.clamp(min=1e-6)
    return value + torch.log(-torch.expm1(-value))


def class_quantiles(values: NDArray[np.float32], codes: NDArray[np.int64], quantile: float) -> FloatArray:
    """The smallest value of each class that at least a share ``quantile`` of the class does not exceed.

    Example:
        >>> class_quantiles(np.array([3.0, 1.0, 2.0, 7.0]), np.array([0, 0, 0, 1]), 0.5)
        array([2., 7.])
    """
    counts = np.bincount(codes)
    # The small term undoes the rounding of products such as 10 * 0.7, which must count as 7.
    rank = np.ceil(counts * quantile - 1e-9).astype(np.int64)
    ordered = values[np.lexsort((values, codes))]
    return ordered[np.cumsum(counts) - counts + rank - 1].astype(np.float64)
