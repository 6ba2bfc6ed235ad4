"""Maximum softmax probability."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from offmap.base import Classification
from offmap.openset.closed import ClosedSetClassifier
from offmap.parameters import NonNegative


@dataclass(kw_only=True, eq=False, repr=False)
class MSPClassifier(ClosedSetClassifier):
    r"""Rejects rows whose likeliest class is not likely enough.

    The novelty is $1 - \max_k p(k \mid x)$ of a softmax classifier; its own rule rejects above 0.5. With ``negatives``
    the classifier has one more class, of points made up just outside the known ones, which no row is answered with.

    Args:
        negatives: Weight of adaptive negatives, without the ascent, as one more class; 0 for none.

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

    negatives: NonNegative = 0.0

    def _extra_classes(self) -> int:
        return int(self.negatives > 0)

    def _fit(self, X: Tensor, y: Tensor) -> None:
        self._fit_closed(X, y, negatives=self.negatives)

    def _classify(self, X: Tensor) -> Classification:
        proba = self.network_(X).softmax(dim=1)[:, : len(self.classes_)]
        return Classification(proba / proba.sum(dim=1, keepdim=True), 1 - proba.amax(dim=1))
