"""What one group is like by itself, kept until its rows change: a page asks for two hundred groups after each act."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offmap.loop.memory import Memory
from offmap.loop.naming import telling_features, word_counts
from offmap.loop.spread import Spread, Vectors
from offmap.loop.state import Group
from offmap.openset.incremental import IncrementalClassifier


@dataclass(frozen=True, eq=False)
class Portrait:
    """One group, whatever the others are.

    Args:
        numbers: Its rows, from the centre to the edge.
        members: The same rows, on the scale of the known classes.
        centre: Their mean.
        own: Their distances to it.
        features: Features that set it apart; empty for texts.
        words: How often each word occurs in it; empty for numbers.
    """

    numbers: tuple[int, ...]
    members: NDArray[np.float32]
    centre: Vectors
    own: Vectors
    features: tuple[str, ...]
    words: Counter[str]


class Portraits:
    """Keeps the portrait of each group until its rows, or the known classes, change.

    Args:
        memory: Where the rows are.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._spread: Spread | None = None
        self._kept: dict[int, tuple[tuple[int, ...], Portrait]] = {}

    def of(
        self,
        groups: list[Group],
        spread: Spread,
        classifier: IncrementalClassifier,
        names: Sequence[str] | None = None,
    ) -> list[Portrait]:
        """The portraits of groups, none of which is empty; ``names`` are those of the features."""
        if spread is not self._spread:
            self._spread, self._kept = spread, {}
        missing = [group for group in groups if self._kept.get(group.id, ((),))[0] != tuple(group.rows)]
        numbers = [number for group in missing for number in group.rows]
        if missing:
            # All rows at once: one by one, a database would take as many questions as there are groups.
            self._memory.vectors(classifier, numbers)
            texts = self._memory.texts(numbers)
            for group in missing:
                vectors = self._memory.vectors(classifier, group.rows)
                words = word_counts([texts[number] for number in group.rows]) if texts else Counter()
                self._kept[group.id] = tuple(group.rows), _portrait(group, vectors, spread, words, names)
        return [self._kept[group.id][1] for group in groups]


def _portrait(
    group: Group, vectors: NDArray[np.float32], spread: Spread, words: Counter[str], names: Sequence[str] | None
) -> Portrait:
    members = spread.transform(vectors)
    centre = members.mean(axis=0)
    own = np.linalg.norm(members - centre, axis=1)
    order = np.argsort(own, kind="stable")
    return Portrait(
        numbers=tuple(group.rows[place] for place in order),
        members=members[order].astype(np.float32),
        centre=centre,
        own=own[order],
        features=() if words else tuple(telling_features(centre, spread.mean, spread.deviation, names)),
        words=words,
    )
