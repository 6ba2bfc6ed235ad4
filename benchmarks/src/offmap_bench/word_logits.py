"""The plain rival for texts: logistic regression on embeddings and words, rejected by the largest logit."""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from offmap.data import TextEncoder
from offmap.labels import choose_unknown_label


@final
@dataclass(kw_only=True, eq=False, repr=False)
class WordLogits(BaseEstimator):
    """Labels texts by logistic regression on their embedding and their words, and rejects low largest logits.

    Args:
        weight: Weight of the words and pairs of words, by TF-IDF, beside the embedding.
        C: Inverse strength of the penalty.
        alpha: Share of the held-out texts that are rejected.
        held_out: Share of the training texts that set the threshold.
        random_state: Seed of the held-out texts.

    Attributes:
        unknown_label_: What ``predict`` answers for rejected texts.
        threshold_: Texts with a novelty above it are rejected.
    """

    weight: float = 2.0
    C: float = 100.0
    alpha: float = 0.12
    held_out: float = 0.1
    random_state: int | None = None

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        """Fits the words and the classifier to most texts, and the threshold to the others."""
        train, rest, labels, _ = train_test_split(
            X, y, test_size=self.held_out, random_state=self.random_state, stratify=y
        )
        self._words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2).fit(train)
        self._logistic = LogisticRegression(C=self.C, max_iter=300).fit(self._features(train), labels)
        self.unknown_label_ = choose_unknown_label(self._logistic.classes_, None)
        self.threshold_ = float(np.quantile(self.novelty(rest), 1 - self.alpha))
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

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Returns the label of each text, or ``unknown_label_``."""
        return np.where(self.novelty(X) > self.threshold_, self.unknown_label_, self.predict_closed(X))
