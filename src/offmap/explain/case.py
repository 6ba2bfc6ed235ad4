"""The rows to explain, with everything they are compared with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from offmap.arrays import holds_text
from offmap.calibration.contract import PromisedModel
from offmap.collaborative.contract import EntityModel
from offmap.data.table import TableEncoder
from offmap.estimator import OpenWorldEstimator
from offmap.explain.columns import Columns
from offmap.explain.composition import Composition, FloatArray, Indices, Mask
from offmap.explain.neighbors import Neighbors, allowed_rows, nearest
from offmap.explain.places import Places
from offmap.explain.reference import fitted_part, reference_rows, sampled_places
from offmap.explain.scoring import Scorer, assess
from offmap.explain.words import Words
from offmap.verdict import Verdict


@dataclass(frozen=True)
class Case:
    """What all explanations of one call share.

    Args:
        scorer: The model and the composed rows.
        verdict: What the model says of the rows to explain.
        reference_verdict: What it says of the reference rows.
        kept: Positions of the reference rows among those that were given.
        allowed: Which reference rows each row may be compared with.
        distances: Distance of each row from each reference row.
        neighbors: The nearest allowed ones.
    """

    scorer: Scorer
    verdict: Verdict
    reference_verdict: Verdict
    kept: Indices
    allowed: Mask
    distances: FloatArray
    neighbors: Neighbors

    @property
    def model(self) -> PromisedModel:
        """The model."""
        return self.scorer.model

    @property
    def composition(self) -> Composition:
        """The rows and what they are made of."""
        return self.scorer.composition

    @property
    def donors(self) -> Indices:
        """The reference rows whose parts are exchanged with those of each row."""
        return self.neighbors.index[:, : self.composition.most_donors]


def prepare(
    model: PromisedModel,
    X: Any,
    *,
    reference: Any,
    entities: Any,
    reference_entities: Any,
    feature_names: Sequence[str] | None,
    max_reference: int,
    n_neighbors: int,
) -> Case:
    """Assesses rows and reference rows and finds the neighbours; the arguments are those of ``explain``."""
    known = reference_rows(model, reference)
    _require_entities(model, entities, reference_entities)
    own, others = as_ids(entities), as_ids(reference_entities)
    if others is not None and len(others) != len(known):
        raise ValueError(f"reference_entities must have one id per reference row ({len(known)}); got {len(others)}")
    kept = sampled_places(known, max_reference)
    known, others = _safe_indexing(known, kept), None if others is None else others[kept]
    composition = composition_of(model, X, known, feature_names)
    verdict, of_reference = assess(model, X, own), assess(model, known, others)
    if of_reference.novel.all():
        raise ValueError("reference must hold normal rows; the model flags all of those that were given")
    allowed = allowed_rows(~of_reference.novel, len(verdict), own, others)
    distances = composition.distances()
    found = nearest(distances, allowed, n_neighbors)
    return Case(Scorer(model, composition, own), verdict, of_reference, kept, allowed, distances, found)


def composition_of(model: Any, X: Any, reference: Any, feature_names: Sequence[str] | None = None) -> Composition:
    """What rows are made of: clauses and words for texts, places for images, else columns."""
    fitted = fitted_part(model)
    # What else calls a part of itself an encoder may not take rows as the user gives them.
    encoder = getattr(fitted, "encoder_", None) if isinstance(fitted, OpenWorldEstimator) else None
    if holds_text(X):
        return Words(X, reference, None if encoder is None else encoder.transform)
    image_shape = getattr(fitted, "image_shape", None)
    if image_shape is not None or np.ndim(X) > 2:
        return Places(X, reference, image_shape)
    return Columns(_without_unused(encoder, X, reference), reference, feature_names)


def _without_unused(encoder: Any, X: Any, reference: Any) -> Any:
    """A table without the columns that an encoder does not use and the reference lacks: they explain nothing."""
    if not isinstance(encoder, TableEncoder) or not hasattr(X, "columns") or not hasattr(reference, "columns"):
        return X
    return X[[name for name in X.columns if str(name) in encoder.columns_ or name in reference.columns]]


def as_ids(entities: Any) -> NDArray[Any] | None:
    """Ids as a flat array, also where they are tuples."""
    if entities is None or isinstance(entities, np.ndarray):
        return entities
    found = list(entities)
    tuples = any(isinstance(each, tuple) for each in found)
    return np.fromiter(found, dtype=object) if tuples else np.asarray(found)


def _require_entities(model: PromisedModel, entities: Any, reference_entities: Any) -> None:
    name = type(model).__name__
    for argument, given in (("entities", entities), ("reference_entities", reference_entities)):
        if isinstance(model, EntityModel) and given is None:
            raise ValueError(f"{argument} must be given, one id per row: {name} asks what is unusual for an entity")
        if not isinstance(model, EntityModel) and given is not None:
            raise ValueError(f"{argument} must be left out: {name} knows no entities")
