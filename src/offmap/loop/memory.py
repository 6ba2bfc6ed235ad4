"""The rows of a world, read from its journal when they are needed, and their features."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.arrays import holds_text
from offmap.loop.rows import unpack, vectors
from offmap.openset.incremental import IncrementalClassifier
from offmap.store import Journal


class Memory:
    """Reads rows by number and keeps their features and texts, since an encoder takes longer than a disk.

    Args:
        journal: Where the rows are.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._vectors: dict[int, NDArray[np.float32]] = {}
        self._texts: dict[int, str] = {}

    def rows(self, numbers: Sequence[int]) -> NDArray[Any]:
        """Rows as they were given."""
        found = self._journal.rows(numbers)
        return unpack([found[number] for number in numbers])

    def texts(self, numbers: Sequence[int]) -> dict[int, str] | None:
        """Rows as texts; None if they are numbers."""
        if not numbers or not holds_text(self.rows(numbers[:1])):
            return None
        missing = [number for number in numbers if number not in self._texts]
        if missing:
            self._texts.update(zip(missing, self.rows(missing).tolist(), strict=True))
        return {number: self._texts[number] for number in numbers}

    def vectors(self, classifier: IncrementalClassifier, numbers: Sequence[int]) -> NDArray[np.float32]:
        """Features of rows; the encoder is that of the first lesson, so they never change."""
        missing = [number for number in numbers if number not in self._vectors]
        if missing:
            found = vectors(classifier, self.rows(missing))
            self._vectors.update(zip(missing, found, strict=True))
        return np.stack([self._vectors[number] for number in numbers])
