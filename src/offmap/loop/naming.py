"""What sets each group apart, in words or features that a person can read."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer


def telling_words(texts: Mapping[int, Sequence[str]], count: int = 5) -> dict[int, list[str]]:
    r"""The words and pairs of words that are frequent in one group and rare in the others.

    Class-based tf-idf: $\mathrm{tf}_{w,g} \log(1 + A / f_w)$ with the share of word $w$ in group $g$, its count $f_w$
    over all groups, and the mean number $A$ of words per group.

    Args:
        texts: The texts of each group.
        count: How many words to give per group.

    Reference: Grootendorst, BERTopic, arXiv:2203.05794, section 3.3.

    Example:
        >>> telling_words({1: ["card was swallowed", "machine kept card"], 2: ["rain today", "rain later"]}, count=1)
        {1: ['card'], 2: ['rain']}
    """
    if not texts:
        return {}
    vectorizer = CountVectorizer(ngram_range=(1, 2), stop_words="english", token_pattern=r"(?u)\b[^\W\d_]\w+\b")
    try:
        counts = vectorizer.fit_transform([" \n ".join(group) for group in texts.values()]).toarray()
    except ValueError:  # only stop words
        return {group: [] for group in texts}
    words = vectorizer.get_feature_names_out()
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    weight = share * np.log1p(counts.sum() / len(texts) / counts.sum(axis=0))
    return {group: _best(words, weight[place], count) for place, group in enumerate(texts)}


def telling_features(
    vectors: NDArray[Any], known: NDArray[Any], names: Sequence[str] | None = None, count: int = 3
) -> list[str]:
    """The features whose mean in the group lies furthest from the known rows, in their standard deviations.

    Example:
        >>> telling_features(np.array([[0.0, 9.0]]), np.array([[0.0, 0.0], [1.0, 1.0]]), ["a", "b"], count=1)
        ['b +17.0']
    """
    spread = known.std(axis=0)
    shift = (vectors.mean(axis=0) - known.mean(axis=0)) / np.where(spread > 0, spread, 1)
    names = names or [f"feature {place}" for place in range(len(shift))]
    return [f"{names[place]} {shift[place]:+.1f}" for place in np.argsort(-np.abs(shift), kind="stable")[:count]]


def _best(words: NDArray[Any], weight: NDArray[Any], count: int) -> list[str]:
    """The words of most weight; a pair of words takes the place of its parts."""
    chosen: list[str] = []
    for place in np.argsort(-weight, kind="stable"):
        if weight[place] <= 0 or len(chosen) == count:
            break
        if not any(words[place] in other.split() for other in chosen):
            chosen.append(str(words[place]))
    return chosen
