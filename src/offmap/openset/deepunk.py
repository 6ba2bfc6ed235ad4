"""DeepUnk: large margin cosine loss, then the local outlier factor."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, normalize, one_hot

from offmap.calibration.classifier_contract import Classification
from offmap.openset.closed_set import ClosedSetClassifier
from offmap.openset.local_outliers import Contamination, LocalOutliers
from offmap.parameters import Count, NonNegative, Positive


@final
class CosineHead(nn.Linear):
    """Returns one logit per class: the cosine between the features and the class weights, times ``scale``.

    Args:
        features: Width of the feature layer.
        classes: Number of logits.
        scale: Largest possible logit.
    """

    def __init__(self, features: int, classes: int, scale: float) -> None:
        super().__init__(features, classes, bias=False)
        self.scale = scale

    def forward(self, features: Tensor) -> Tensor:
        """Returns the logits."""
        return self.scale * linear(normalize(features, dim=1), normalize(self.weight, dim=1))


@final
@dataclass(kw_only=True, eq=False, repr=False)
class DeepUnkClassifier(ClosedSetClassifier):
    r"""Trains compact classes with a margin loss and rejects a row whose features lie where training rows are sparse.

    The classifier sees the cosines $c_k$ between features and class weights. In training a margin is subtracted from
    the cosine of a row's own class,

    $$L = -\log \frac{e^{s (c_y - m)}}{e^{s (c_y - m)} + \sum_{k \ne y} e^{s c_k}}.$$

    The novelty is the local outlier factor of the features, scaled to length 1, less its quantile
    1 - ``contamination`` over the training rows. The paper's own rule (``rule="own"``) rejects above 0.

    Args:
        scale: Largest possible logit $s$.
        margin: Margin $m$, subtracted from the cosine of a row's own class in training. Raise it for more compact
            classes.
        n_neighbors: Number of neighbours among the training rows, or all of them if there are fewer. Raise it if the
            score depends too much on single training rows.
        contamination: Share of the training rows that the own rule counts as outliers. It has no effect on the
            calibrated rule.

    Attributes:
        network_: The trained classifier.
        training_features_: Features of the training rows, scaled to length 1, among which neighbours are found.

    Reference: Lin and Xu, Deep Unknown Intent Detection with Margin Loss, arXiv:1906.00434.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = DeepUnkClassifier(calibration=0.3, random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3]])
        array([0, 1])
    """

    own_threshold: ClassVar[float | None] = 0.0

    scale: Positive = 30.0
    margin: NonNegative = 0.35
    n_neighbors: Count = 20
    contamination: Contamination = 0.05

    def _build(self) -> None:
        self.network_ = self._new_network()
        head = self.network_.head
        self.network_.head = CosineHead(head.in_features, head.out_features, self.scale).to(self.device)
        # Only a model that is loaded from a file has its training features already.
        if hasattr(self, "training_features_"):
            self._outliers = LocalOutliers(self.training_features_, self.n_neighbors, self.contamination)

    def _fit(self, X: Tensor, y: Tensor) -> None:
        self.__dict__.pop("training_features_", None)
        self._fit_closed(X, y, loss=lambda logits, codes: large_margin_loss(logits, codes, self.scale * self.margin))
        with torch.no_grad():
            self.training_features_ = self._directions(X).double().cpu().numpy()
        self._outliers = LocalOutliers(self.training_features_, self.n_neighbors, self.contamination)

    def _directions(self, X: Tensor) -> Tensor:
        return normalize(self.network_.features(X), dim=1)

    def _classify(self, X: Tensor) -> Classification:
        return Classification(self.network_(X).softmax(dim=1), self._outliers.novelty(self._directions(X)))


def large_margin_loss(logits: Tensor, codes: Tensor, margin: float) -> Tensor:
    """Returns the cross-entropy after ``margin`` is subtracted from the logit of each row's own class."""
    return cross_entropy(logits - margin * one_hot(codes, logits.shape[1]), codes)
