"""Local outlier factor on the features of a classifier."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from sklearn.neighbors import LocalOutlierFactor
from torch import Tensor
from torch.nn.functional import cross_entropy

from offmap.base import Classification
from offmap.openset.closed import ClosedSetClassifier
from offmap.parameters import Count, Limit

Contamination = Annotated[float, Limit("above 0 and at most 0.5", lambda value: 0 < value <= 0.5)]


@dataclass(kw_only=True, eq=False, repr=False)
class LocalOutlierClassifier(ClosedSetClassifier):
    """What the methods share that reject rows whose features lie in a sparser place than their neighbours do.

    Args:
        n_neighbors: How many neighbours among the training rows count (all others, if there are fewer).
        contamination: Share of the training rows that the own rule takes for outliers.
    """

    own_threshold: ClassVar[float | None] = 0.0

    rule: Literal["calibrated", "own"] = "own"
    n_neighbors: Count = 20
    contamination: Contamination = 0.05

    @abstractmethod
    def _loss(self, logits: Tensor, codes: Tensor) -> Tensor:
        """What the classifier is trained on."""

    @abstractmethod
    def _features(self, X: Tensor) -> Tensor:
        """The space in which neighbours are looked for."""

    def _fit(self, X: Tensor, y: Tensor) -> None:
        # What an earlier fit left belongs to another network, and would be fitted for nothing.
        self.__dict__.pop("reference_", None)
        self._fit_closed(X, y, loss=self._loss)
        with torch.no_grad():
            self.reference_ = self._features(X).double().cpu().numpy()
        self._fit_outliers()

    def _build(self) -> None:
        super()._build()
        if hasattr(self, "reference_"):
            self._fit_outliers()

    def _fit_outliers(self) -> None:
        neighbors = min(self.n_neighbors, len(self.reference_) - 1)
        outliers = LocalOutlierFactor(n_neighbors=neighbors, contamination=self.contamination, novelty=True)
        self._outliers = outliers.fit(self.reference_)

    def _classify(self, X: Tensor) -> Classification:
        features = self._features(X).double().cpu().numpy()
        finite = np.isfinite(features).all(axis=1)
        inlying = self._outliers.decision_function(np.where(finite[:, None], features, 0.0))
        return Classification(self.network_(X).softmax(dim=1), torch.from_numpy(np.where(finite, -inlying, np.inf)))


@dataclass(kw_only=True, eq=False, repr=False)
class LOFClassifier(LocalOutlierClassifier):
    r"""Rejects rows that lie, in the feature layer of a softmax classifier, where training rows are sparse.

    With $\rho(z)$ the local density at a row's features and $N(z)$ its nearest training rows, the local outlier factor
    is $\frac{1}{|N|} \sum_{o \in N(z)} \rho(o) / \rho(z)$. The novelty is the factor less its quantile
    1 - ``contamination`` over the training rows; its own rule rejects above 0.

    Reference: Breunig, Kriegel, Ng and Sander, LOF: Identifying Density-Based Local Outliers, SIGMOD 2000,
    definition 7.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = LOFClassifier(random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [7.7, 2.8, 6.7, 2.0]])
        array([ 0,  1, -1])
    """

    def _loss(self, logits: Tensor, codes: Tensor) -> Tensor:
        return cross_entropy(logits, codes)

    def _features(self, X: Tensor) -> Tensor:
        return self.network_.features(X)
