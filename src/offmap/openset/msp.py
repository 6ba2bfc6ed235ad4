"""Maximum softmax probability."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor

from offmap.calibration.classifier_contract import Classification
from offmap.openset.closed_set import ClosedSetClassifier
from offmap.parameters import NonNegative


@final
@dataclass(kw_only=True, eq=False, repr=False)
class MSPClassifier(ClosedSetClassifier):
    r"""Rejects a row when the softmax probability of its likeliest class is low.

    The novelty is $1 - \max_k p(k \mid x)$. The paper's own rule (``rule="own"``) rejects above 0.5. With
    ``negative_weight`` above 0 the softmax has one more class, of synthetic negatives placed just outside the known
    classes; it is never predicted.

    Args:
        negative_weight: Weight of the synthetic negatives in training; 0 for none. Raise it if rows far from all
            training data are accepted.

    Attributes:
        network_: The trained classifier.

    Reference: Hendrycks and Gimpel, A Baseline for Detecting Misclassified and Out-of-Distribution Examples,
    arXiv:1610.02136.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = MSPClassifier(calibration=0.3, random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3]])
        array([0, 1])
    """

    own_threshold: ClassVar[float | None] = 0.5

    negative_weight: NonNegative = 0.0

    def _build(self) -> None:
        self.network_ = self._new_network(extra_classes=int(self.negative_weight > 0))

    def _fit(self, X: Tensor, y: Tensor) -> None:
        self._fit_closed(X, y, negative_weight=self.negative_weight)

    def _classify(self, X: Tensor) -> Classification:
        proba = self.network_(X).softmax(dim=1)[:, : len(self.classes_)]
        return Classification(proba / proba.sum(dim=1, keepdim=True), 1 - proba.amax(dim=1))
