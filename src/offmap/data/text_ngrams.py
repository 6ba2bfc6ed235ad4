r"""Features of the letters of a text, beside its embedding: a sentence encoder blurs the words that name a topic.

Runs of three to five letters within a word are counted in ``BUCKETS`` buckets by a hash. The counts $c$ become
$v = (1 + \log c) \cdot \mathrm{idf}$ (0 where $c = 0$), scaled to unit length, and are projected onto the leading right
singular vectors of the training texts. The hash needs no vocabulary, so a fitted model is two arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

__all__ = ["BUCKETS", "NGRAMS", "NgramFeatures", "check_arrays"]

BUCKETS = 1 << 14
NGRAMS = (3, 5)
_WIDTH = 128
# Singular vectors of few texts are those of single texts.
_TEXTS_PER_FEATURE = 4

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class NgramFeatures:
    """Maps texts to a few features of their letters, of unit length as a mean over the training texts.

    Args:
        idf: Inverse document frequency of each bucket.
        axes: Leading right singular vectors, ``(features, buckets)``, scaled.

    Example:
        >>> texts = ["sort a list in haskell", "haskell list monad", "oracle sql join", "join two tables in oracle"] * 2
        >>> sort, monad, join, _ = NgramFeatures.fit(texts, seed=0).transform(texts[:4])
        >>> bool(sort @ monad > sort @ join)
        True
    """

    idf: Floats
    axes: Floats

    @classmethod
    def fit(cls, texts: Sequence[str], seed: int) -> Self:
        """Measures how frequent the buckets are and in which directions the texts differ."""
        counts = _counted(texts)
        idf = (np.log((1 + len(texts)) / (1 + counts.getnnz(axis=0))) + 1).astype(np.float32)
        weighted = _weighted(counts, idf)
        width = max(1, min(_WIDTH, len(texts) // _TEXTS_PER_FEATURE))
        axes = randomized_svd(weighted, width, random_state=seed)[2].astype(np.float32)
        length = np.linalg.norm(weighted @ axes.T, axis=1).mean()
        return cls(idf, axes / np.float32(max(length, np.finfo(np.float32).tiny)))

    def transform(self, texts: Sequence[str]) -> Floats:
        """Returns the features ``(n, d)`` of the texts."""
        return np.asarray(_weighted(_counted(texts), self.idf) @ self.axes.T, dtype=np.float32)

    def beside(self, vectors: Floats, texts: Sequence[str], weight: float) -> Floats:
        """Appends the features, ``weight`` times as long as the vectors, and keeps the length of each vector."""
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        both = np.hstack([vectors, np.float32(weight) * length * self.transform(texts)])
        grown = np.linalg.norm(both, axis=1, keepdims=True)
        return both * (length / np.maximum(grown, np.finfo(np.float32).tiny))


def check_arrays(arrays: Any) -> None:
    """Raises a ``ValueError`` unless the arrays, which may come from a file, make up an ``NgramFeatures``."""
    if not isinstance(arrays, dict) or set(arrays) != {"idf", "axes"}:
        raise ValueError("ngrams_ must hold the arrays idf and axes")
    if not all(isinstance(array, np.ndarray) and array.dtype == np.float32 for array in arrays.values()):
        raise ValueError("ngrams_ must hold arrays of 32-bit floating point numbers")
    if arrays["idf"].shape != (BUCKETS,) or arrays["axes"].ndim != 2 or arrays["axes"].shape[1] != BUCKETS:
        raise ValueError(f"ngrams_ must hold {BUCKETS} numbers idf, and axes with as many columns")
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("ngrams_ must be finite")


@lru_cache(maxsize=1)
def _vectorizer() -> Any:
    return HashingVectorizer(
        analyzer="char_wb", ngram_range=NGRAMS, n_features=BUCKETS, alternate_sign=False, norm=None, dtype=np.float32
    )


def _counted(texts: Sequence[str]) -> Any:
    return _vectorizer().transform(texts)


def _weighted(counts: Any, idf: Floats) -> Any:
    """Returns rows of unit length: logarithmic counts times the inverse document frequencies."""
    weighted = counts.copy()
    weighted.data = (1 + np.log(weighted.data)) * idf[weighted.indices]
    return normalize(weighted, copy=False)
