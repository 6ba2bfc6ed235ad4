"""Local outlier factor on the features of a classifier."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from offmap.calibration.classifier_contract import Classification
from offmap.openset.closed_set import ClosedSetClassifier
from offmap.openset.local_outliers import Contamination, LocalOutliers
from offmap.parameters import Count


@final
@dataclass(kw_only=True, eq=False, repr=False)
class LOFClassifier(ClosedSetClassifier):
    r"""Rejects a row when its features, in a softmax classifier, lie where training rows are sparse.

    With $\rho(z)$ the local density at a row's features and $N(z)$ its nearest training rows, the local outlier factor
    is $\frac{1}{|N|} \sum_{o \in N(z)} \rho(o) / \rho(z)$. The novelty is the factor less its quantile
    1 - ``contamination`` over the training rows. Its own rule (``rule="own"``) rejects above 0.

    Args:
        n_neighbors: Number of neighbours among the training rows, or all of them if there are fewer. Raise it if the
            score depends too much on single training rows.
        contamination: Share of the training rows that the own rule counts as outliers. It has no effect on the
            calibrated rule.

    Attributes:
        network_: The trained classifier.
        training_features_: Features of the training rows, among which neighbours are found.

    Reference: Breunig, Kriegel, Ng and Sander, LOF: Identifying Density-Based Local Outliers, SIGMOD 2000,
    definition 7.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = LOFClassifier(calibration=0.3, random_state=0).fit(X[y < 2], y[y < 2])
        >>> classifier.predict([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [7.7, 2.8, 6.7, 2.0]])
        array([ 0,  1, -1])
    """

    own_threshold: ClassVar[float | None] = 0.0

    n_neighbors: Count = 20
    contamination: Contamination = 0.05

    def _build(self) -> None:
        self.network_ = self._new_network()
        # Only a model that is loaded from a file has its training features already.
        if hasattr(self, "training_features_"):
            self._outliers = LocalOutliers(self.training_features_, self.n_neighbors, self.contamination)

    def _fit(self, X: Tensor, y: Tensor) -> None:
        self.__dict__.pop("training_features_", None)
        self._fit_closed(X, y)
        with torch.no_grad():
            self.training_features_ = self.network_.features(X).double().cpu().numpy()
        self._outliers = LocalOutliers(self.training_features_, self.n_neighbors, self.contamination)

    def _classify(self, X: Tensor) -> Classification:
        return Classification(self.network_(X).softmax(dim=1), self._outliers.novelty(self.network_.features(X)))
