"""The plain rival for texts: logistic regression on embeddings and words, rejected by the largest logit."""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from offmap.data import TextEncoder


@final
@dataclass(kw_only=True, eq=False, repr=False)
class WordLogits(BaseEstimator):
    """Labels texts by logistic regression on their embedding and their words; low largest logits are novel.

    Args:
        weight: Weight of the words and pairs of words, by TF-IDF, beside the embedding.
        C: Inverse strength of the penalty.
        random_state: Not used: nothing is random.
    """

    weight: float = 2.0
    C: float = 100.0
    random_state: int | None = None

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        """Fits the words and the classifier."""
        self._words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2).fit(X)
        self._logistic = LogisticRegression(C=self.C, max_iter=300).fit(self._features(X), y)
        return self

    def _features(self, texts: NDArray[Any]) -> csr_matrix:
        vectors = TextEncoder().transform(texts).astype(np.float64)
        return hstack([csr_matrix(vectors), self.weight * self._words.transform(texts)]).tocsr()

    def novelty(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Returns the largest logit of each text, negated; higher is more novel."""
        return -self._logistic.decision_function(self._features(X)).max(axis=1)

    def predict_closed(self, X: NDArray[Any]) -> NDArray[Any]:
        """Returns the likeliest known label of each text."""
        return self._logistic.predict(self._features(X))
