"""Plain novelty scores on the features of the ANS heads, which the heads have to beat."""

from dataclasses import dataclass
from typing import Any, Literal, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from offmap.nets import Standardise
from offmap.openset.adapter import Adapter, fit_adapter, fit_scale
from offmap.random_state import local_seed


@final
@dataclass(kw_only=True, eq=False, repr=False)
class PlainScore(BaseEstimator):
    """Labels rows by logistic regression, and scores how novel they are.

    Args:
        score: "nearest" is the distance to the nearest training row, "max logit" the largest logit of the logistic
            regression, negated.
        adapter_epochs: Passes over the rows that adapt them to the known classes; 0 leaves them as they are.
        penalty: L2 penalty of the logistic regression.
        encoder: Turns texts into rows first; it is fitted to the training texts.
        random_state: Seed of the adapter.

    Example:
        >>> X, y = np.eye(2)[np.arange(40) % 2] + np.arange(40)[:, None] / 1000, np.arange(40) % 2
        >>> model = PlainScore(random_state=0).fit(X, y)
        >>> model.predict_closed([[1.0, 0.0], [0.0, 1.0]]), model.novelty([[1.0, 0.0], [9.0, 9.0]]).round(0)
        (array([0, 1]), array([ 0., 24.]))
    """

    score: Literal["nearest", "max logit"] = "nearest"
    adapter_epochs: int = 2
    penalty: float = 3e-3
    encoder: Any = None
    random_state: int | None = None

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        """Fits the encoder, the classifier and the neighbours."""
        if self.encoder is not None:
            self.encoder.fit(X)
        self._fit_space(self._encoded(X), y)
        rows = self._space(X)
        self._logistic = LogisticRegression(C=1 / (self.penalty * len(rows)), max_iter=1000).fit(rows, y)
        self._neighbours = NearestNeighbors(n_neighbors=1).fit(rows)
        return self

    def _fit_space(self, X: NDArray[Any], y: NDArray[Any]) -> None:
        """Adapts rows to the known classes as ``ANSClassifier`` does."""
        rows, codes = torch.from_numpy(np.float32(X)), torch.from_numpy(np.unique(y, return_inverse=True)[1])
        self._scale, self._adapter = Standardise(X.shape[1]), Adapter(X.shape[1])
        fit_scale(self._scale, rows, one_unit=False)
        if self.adapter_epochs:
            with local_seed(self.random_state or 0):
                fit_adapter(self._adapter, self._scale(rows), codes, epochs=self.adapter_epochs)

    def _encoded(self, X: Any) -> NDArray[Any]:
        return np.asarray(X if self.encoder is None else self.encoder.transform(X))

    def _space(self, X: Any) -> NDArray[np.float32]:
        with torch.no_grad():
            return self._adapter(self._scale(torch.from_numpy(np.float32(self._encoded(X))))).numpy()

    def novelty(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Returns the score of each row; higher is more novel."""
        Z = self._space(X)
        if self.score == "nearest":
            return self._neighbours.kneighbors(Z)[0][:, 0].astype(np.float64)
        logits = self._logistic.decision_function(Z)
        logits = np.column_stack([-logits / 2, logits / 2]) if logits.ndim == 1 else logits
        return -logits.max(axis=1)

    def predict_closed(self, X: NDArray[Any]) -> NDArray[Any]:
        """Returns the likeliest known label of each row."""
        return self._logistic.predict(self._space(X))
