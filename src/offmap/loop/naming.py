"""What sets each group apart, in words or features that a person can read."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

# Words of letters; longer ones are addresses or codes, which name nothing.
_WORDS = CountVectorizer(ngram_range=(1, 2), stop_words="english", token_pattern=r"(?u)\b[^\W\d_]\w{1,39}\b")


def word_counts(texts: Sequence[str]) -> Counter[str]:
    """How often each word, and each pair of words, occurs in texts; stop words are left out.

    Example:
        >>> word_counts(["the card was swallowed", "my card"])
        Counter({'card': 2, 'swallowed': 1, 'card swallowed': 1})
    """
    analyze = _WORDS.build_analyzer()
    return Counter(word for text in texts for word in analyze(text))


def telling_words(counts: Mapping[int, Counter[str]], count: int = 5) -> dict[int, list[str]]:
    r"""The words and pairs of words that are frequent in one group and rare in the others.

    Class-based tf-idf: $\mathrm{tf}_{w,g} \log(1 + A / f_w)$ with the share of word $w$ in group $g$, its count $f_w$
    over all groups, and the mean number $A$ of words per group.

    Args:
        counts: How often each word occurs in each group.
        count: How many words to give per group.

    Reference: Grootendorst, BERTopic, arXiv:2203.05794, section 3.3.

    Example:
        >>> texts = {1: ["card was swallowed", "machine kept card"], 2: ["rain today", "rain later"]}
        >>> telling_words({group: word_counts(own) for group, own in texts.items()}, count=1)
        {1: ['card'], 2: ['rain']}
    """
    everywhere: Counter[str] = Counter()
    for own in counts.values():
        everywhere.update(own)
    mean = everywhere.total() / max(len(counts), 1)
    return {group: _best(own, everywhere, mean, count) for group, own in counts.items()}


def telling_features(
    centre: NDArray[Any],
    mean: NDArray[Any],
    deviation: NDArray[Any],
    names: Sequence[str] | None = None,
    count: int = 3,
) -> list[str]:
    """The features whose mean in the group lies furthest from that of the known rows, in their standard deviations.

    Args:
        centre: Mean of the group.
        mean: Mean of the known rows.
        deviation: Their standard deviation.
        names: Names of the features; by default "feature 0", "feature 1", …
        count: How many features to give.

    Example:
        >>> telling_features(np.array([0.0, 9.0]), np.array([0.5, 0.5]), np.array([0.5, 0.5]), count=1)
        ['feature 1 +17.0']
    """
    shift = (centre - mean) / np.where(deviation > 0, deviation, 1)
    strongest = np.argsort(-np.abs(shift), kind="stable")[:count]
    return [f"{names[place] if names else f'feature {place}'} {shift[place]:+.1f}" for place in strongest]


def _best(own: Counter[str], everywhere: Counter[str], mean: float, count: int) -> list[str]:
    """The words of most weight; a pair of words takes the place of its parts."""
    words = sorted(own)
    share = np.array([own[word] for word in words]) / max(own.total(), 1)
    weight = share * np.log1p(mean / np.array([everywhere[word] for word in words]))
    chosen: list[str] = []
    for place in np.argsort(-weight, kind="stable"):
        if len(chosen) == count:
            break
        if not any(words[place] in other.split() for other in chosen):
            chosen.append(words[place])
    return chosen
