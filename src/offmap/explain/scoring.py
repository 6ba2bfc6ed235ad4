"""Asks a model about mixed rows, whatever kind of model it is."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.calibration.contract import PromisedModel
from offmap.collaborative.contract import EntityModel
from offmap.density import NearestNeighborDetector
from offmap.explain.composition import Composition, FloatArray, Indices, Mask
from offmap.explain.reference import scoring_model
from offmap.verdict import Verdict


@dataclass(frozen=True)
class Scorer:
    """A model, the rows to explain, and the entity of each of them where the model knows entities.

    Args:
        model: A fitted model.
        composition: The rows to explain and the reference rows.
        entities: The entity of each row to explain, or None.
    """

    model: PromisedModel
    composition: Composition
    entities: NDArray[Any] | None = None

    def assess(self, rows: Indices, donors: Indices, replaced: Mask) -> Verdict:
        """What the model says of mixed rows; see ``Composition.mixed``."""
        X = self.composition.mixed(rows, donors, replaced)
        return assess(self.model, X, None if self.entities is None else self.entities[rows])

    def novelty(self, rows: Indices, donors: Indices, replaced: Mask) -> FloatArray:
        """The novelty of mixed rows, scored in batches."""
        starts = range(0, len(rows), _BATCH)
        parts = [slice(start, start + _BATCH) for start in starts]
        return np.concatenate([finite(self._novelty(rows[s], donors[s], replaced[s])) for s in parts])

    def _novelty(self, rows: Indices, donors: Indices, replaced: Mask) -> FloatArray:
        """Mixed rows are new rows, also where nothing is mixed: a reference row may have trained the model."""
        model = scoring_model(self.model)
        if isinstance(model, NearestNeighborDetector):
            return model.novelty_of_new(self.composition.mixed(rows, donors, replaced))
        return self.assess(rows, donors, replaced).novelty


def assess(model: PromisedModel, X: Any, entities: NDArray[Any] | None) -> Verdict:
    """What the model says of rows, of their entities if it knows entities."""
    if isinstance(model, EntityModel) and entities is not None:
        return model.assess(X, entities)
    return model.assess(X)


def finite(novelty: FloatArray) -> FloatArray:
    """Novelty without infinities, so that differences of it are numbers."""
    return np.nan_to_num(np.clip(novelty, -_LARGEST, _LARGEST))


_BATCH = 32_768
_LARGEST = 1e100
