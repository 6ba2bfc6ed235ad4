"""Adaptive decision boundary."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.optim import Adam

from offmap.calibration.classifier_contract import Classification
from offmap.class_statistics import class_means
from offmap.openset.closed_set import ClosedSetClassifier
from offmap.parameters import Fraction, NonNegative, Positive
from offmap.train import Batch, Batches, descend, train


@final
@dataclass(kw_only=True, eq=False, repr=False)
class ADBClassifier(ClosedSetClassifier):
    r"""Rejects a row when its features lie outside the ball around the nearest class centroid.

    With $d$ the distance of a row's features to the mean of its class, the radius $\Delta = \log(1 + e^\theta)$ of
    each class minimises

    $$L = \frac1n \sum_i \begin{cases} d_i - \Delta & d_i > \Delta \\ \Delta - d_i & \text{else.} \end{cases}$$

    That is the mean of $|d - \Delta|$, which is least at the *median* distance: with the own rule, half of all rows
    like those that the radius was learned from would be rejected. The paper's radii are larger because dropout, which
    moves features away from their centroid, is on while radii are learned and off when rows are scored. It is the
    same here; without dropout, set ``quantile``. The novelty is $d - \Delta$ at the nearest centroid. The paper's own
    rule (``rule="own"``) rejects from 0 on. The probabilities of the known classes are the softmax of $-d$.

    Args:
        quantile: Share of the training rows of a class that lie within its radius, measured without dropout; by
            default radii are learned. A class of one row then has radius 0, and the own rule never predicts it.
        radius_lr: Learning rate of Adam for $\theta$.
        negative_weight: Weight of synthetic negatives, which train one more class of the classifier; 0 for none.
            Raise it if rows far from all training data are accepted.

    Attributes:
        network_: The trained classifier.
        centroids_: Mean features of each class, in the order of ``classes_``.
        radii_: Radius of each class.

    Reference: Zhang, Xu and Lin, Deep Open Intent Classification with Adaptive Decision Boundary, arXiv:2012.10209.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = ADBClassifier(calibration=0.3, random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [7.7, 2.8, 6.7, 2.0]])
        array([ 0,  1, -1])
    """

    own_threshold: ClassVar[float | None] = 0.0

    quantile: Fraction | None = None
    radius_lr: Positive = 0.05
    negative_weight: NonNegative = 0.0

    def _build(self) -> None:
        self.network_ = self._new_network(extra_classes=int(self.negative_weight > 0))

    def _check_fitted(self) -> None:
        """Radii and centroids are looked up by class: a file must have one of each per class."""
        if self.radii_.shape != (len(self.classes_),) or len(self.centroids_) != len(self.classes_):
            raise ValueError("radii_ and centroids_ must have one entry per class")
        super()._check_fitted()

    def _fit(self, X: Tensor, y: Tensor) -> None:
        self._fit_closed(X, y, negative_weight=self.negative_weight)
        with torch.no_grad():
            features = self.network_.features(X)
        centroids = class_means(features, y, len(self.classes_))
        if self.quantile is None:
            radii = self._learned_radii(features, y, centroids)
        else:
            distance = (features - centroids[y]).norm(dim=1)
            radii = class_quantiles(distance.cpu().numpy(), y.cpu().numpy(), self.quantile)
        self.centroids_, self.radii_ = centroids.cpu().numpy(), radii

    def _learned_radii(self, features: Tensor, y: Tensor, centroids: Tensor) -> NDArray[np.float64]:
        def distance(rows: Tensor, codes: Tensor) -> Tensor:
            return (self.network_.dropout(rows) - centroids[codes]).norm(dim=1)

        def terms(batch: Batch) -> dict[str, Tensor]:
            rows, codes = batch
            return {"boundary": boundary_loss(distance(rows, codes), softplus(theta)[codes])}

        self.network_.train()
        # Starting at the mean distance leaves little to learn, whatever the scale of the features.
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
        # A matrix product would lose small distances to rounding.
        distance = torch.cdist(features, centroids, compute_mode="donot_use_mm_for_euclid_dist").double()
        nearest, at = distance.min(dim=1)
        # A row exactly on the boundary is outside: compare with the next number below the radius.
        inside = radii.nextafter(torch.full_like(radii, -torch.inf))
        return Classification((-distance).softmax(dim=1), nearest - inside[at])


def boundary_loss(distance: Tensor, radius: Tensor) -> Tensor:
    """Returns the mean distance of rows from the boundary of their class, inside or outside."""
    return (distance - radius).abs().mean()


def inverse_softplus(value: Tensor) -> Tensor:
    """Returns the number that softplus maps to ``value``, which is at least 1e-6."""
    value = value.clamp(min=1e-6)
    return value + torch.log(-torch.expm1(-value))


def class_quantiles(values: NDArray[np.float32], codes: NDArray[np.int64], quantile: float) -> NDArray[np.float64]:
    """Returns the smallest value of each class that at least a share ``quantile`` of the class does not exceed.

    Example:
        >>> class_quantiles(np.array([3.0, 1.0, 2.0, 7.0]), np.array([0, 0, 0, 1]), 0.5)
        array([2., 7.])
    """
    counts = np.bincount(codes)
    # The small term undoes rounding: 10 * 0.7 must count as 7.
    rank = np.ceil(counts * quantile - 1e-9).astype(np.int64)
    ordered = values[np.lexsort((values, codes))]
    return ordered[np.cumsum(counts) - counts + rank - 1].astype(np.float64)
