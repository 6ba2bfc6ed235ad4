"""Texts: clauses, or the phrases of a single clause, which are left out one by one."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, final

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_distances

from offmap.explain.composition import Composition, FloatArray, Indices, Kind, Mask

Encode = Callable[[Sequence[str]], Any]


@final
class Words(Composition):
    """Texts whose parts are their clauses, or where there is only one clause its words, in at most six phrases.

    A replaced part is left out; a text of which every part is replaced becomes the reference text.

    Args:
        X: The texts to explain.
        reference: Normal texts.
        encode: Turns texts into vectors to find similar ones; by default TF-IDF of groups of letters.

    Example:
        >>> texts = Words(["where is my card, and who won the cup?"], ["block my card"])
        >>> texts.names(0)
        ('where is my card,', 'and who won the cup?')
        >>> texts.mixed(np.array([0]), np.array([0]), np.array([[False, True]]))
        ['where is my card']
    """

    kind: ClassVar[Kind] = "text"
    most_donors: ClassVar[int] = 1
    takes_out: ClassVar[bool] = True

    def __init__(self, X: Sequence[str], reference: Sequence[str], encode: Encode | None = None) -> None:
        self._texts, self._reference = [str(text) for text in X], [str(text) for text in reference]
        self._parts = [_parts(text) for text in self._texts]
        self._encode = encode or _letters(self._reference)
        self.counts = np.array([len(parts) for parts in self._parts], dtype=np.intp)

    def mixed(self, rows: Indices, donors: Indices, replaced: Mask) -> Any:
        """Texts without some of their parts."""
        return [self._without(*each) for each in zip(rows.tolist(), donors.tolist(), replaced, strict=True)]

    def distances(self) -> FloatArray:
        """One minus the cosine between the vectors of the texts."""
        return np.asarray(cosine_distances(self._encode(self._texts), self._encode(self._reference)))

    def names(self, row: int) -> tuple[str, ...]:
        """The parts themselves."""
        return tuple(self._parts[row])

    def values(self, row: int) -> tuple[Any, ...]:
        """The parts themselves."""
        return tuple(self._parts[row])

    def usual(self, donors: Indices) -> tuple[Any, ...]:
        """Nothing: the parts of other texts are not the same ones."""
        return ()

    def reference(self, row: int) -> Any:
        """A reference text."""
        return self._reference[row]

    def _without(self, row: int, donor: int, replaced: Mask) -> str:
        kept = [part for part, gone in zip(self._parts[row], replaced, strict=False) if not gone]
        if len(kept) == len(self._parts[row]):
            return self._texts[row]
        # What joined a clause to its neighbour makes no sense without it.
        text = _LEADING.sub("", " ".join(kept)).rstrip(" ,;:")
        return text if re.search(r"\w", text) else self._reference[donor]


def _parts(text: str) -> list[str]:
    clauses = [clause.strip() for clause in _BETWEEN_CLAUSES.split(text) if re.search(r"\w", clause)]
    return clauses if len(clauses) > 1 else _phrases(text.split()) or [text]


def _phrases(words: list[str]) -> list[str]:
    """Words that follow one another, in at most six groups: each part costs an encoding of the text without it."""
    count = min(len(words), _MOST_PHRASES)
    ends = [len(words) * place // count for place in range(count + 1)] if count else []
    return [" ".join(words[start:end]) for start, end in pairwise(ends)]


def _letters(reference: Sequence[str]) -> Encode:
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True).fit(reference)
    return vectorizer.transform


_MOST_PHRASES = 6
_CONJUNCTIONS = r"(?:and|but|or|also|plus|then|so|because|while)"
# Behind a punctuation mark, or before a conjunction that has at least two words on each side.
_BETWEEN_CLAUSES = re.compile(rf"(?<=[.,;:!?])\s+|(?<=\w\s)(?<!^)(?={_CONJUNCTIONS}\s+\S+\s+\S+)", re.IGNORECASE)
_LEADING = re.compile(rf"^\W*(?:{_CONJUNCTIONS}\s+)+", re.IGNORECASE)
