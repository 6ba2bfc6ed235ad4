"""Entities of a fitted model: those that it does not know, and those to add, update or remove."""

import os
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from offmap.calibration import SuggestedRate
from offmap.collaborative.base import EntityDetector
from offmap.collaborative.ids import check_ids
from offmap.verdict import Verdict
from offmap.workflow.fitting import load_model

NewEntities = Literal["flag", "skip", "add", "error"]


def assess_entities(
    model: EntityDetector, rows: Any, entities: NDArray[Any], new: NewEntities
) -> tuple[Verdict, NDArray[np.intp]]:
    """Assesses rows of which some belong to entities that the model does not know.

    Args:
        model: A fitted model.
        rows: The rows.
        entities: The entity of each row.
        new: "flag" calls rows of unknown entities novel, with an infinite novelty and no p-value; "skip" leaves them
            out; "add" learns the entity from these rows first, in a copy of the model; "error" refuses them.

    Returns:
        The verdict, and the places of its rows in ``rows``.
    """
    known = is_known(model, entities)
    every = np.arange(len(entities))
    if new == "error" or known.all():
        return model.assess(rows, entities), every
    if new == "add":
        return add_entities(deepcopy(model), _at(rows, ~known), entities[~known]).assess(rows, entities), every
    verdict = model.assess(_at(rows, known), entities[known]) if known.any() else None
    if new == "flag":
        return _flagged(entities, verdict, known), every
    return verdict or _flagged(entities[:0], None, known[:0]), every[known]


def suggest_for_entities(model: EntityDetector, rows: Any, entities: NDArray[Any]) -> SuggestedRate:
    """The false-alarm rate that the rows of known entities suggest."""
    known = is_known(model, entities)
    if not known.any():
        raise ValueError("a rate can be suggested by rows of known entities only, and there is none")
    return model.suggest_alpha(_at(rows, known), entities[known])


def add_entities(model: EntityDetector, rows: Any, entities: NDArray[Any]) -> EntityDetector:
    """Adds entities that the model does not know, each from its rows; the networks stay as they are."""
    if (known := is_known(model, entities)).any():
        raise ValueError(f"entity {entities[known][0]!s} is known already; `offmap update` adds rows to it")
    for entity in np.unique(entities):
        model.add_entity(entity.item(), _at(rows, entities == entity))
    return model


def update_entities(model: EntityDetector, rows: Any, entities: NDArray[Any]) -> EntityDetector:
    """Takes in more rows of known entities."""
    if not (known := is_known(model, entities)).all():
        raise ValueError(f"entity {entities[~known][0]!s} is not known; `offmap add` adds it")
    return model.partial_fit(rows, entities)


def remove_entities(model: EntityDetector, entities: Sequence[str]) -> EntityDetector:
    """Forgets entities, whose ids are given as texts; networks, threshold and the other entities stay as they are."""
    if model.entity_ids_.dtype.kind == "U":
        return model.remove_entities(np.asarray(entities))
    if wrong := [entity for entity in entities if not entity.removeprefix("-").isdecimal()]:
        raise ValueError(f"entities must be integers, as the fitted ones are; got {wrong[0]!r}")
    return model.remove_entities(np.asarray([int(entity) for entity in entities]))


def load_entity_model(path: str | os.PathLike[str], trusted: Sequence[str] = ()) -> EntityDetector:
    """Restores a saved model of many entities; other models are refused."""
    model = load_model(path, trusted)
    if not isinstance(model, EntityDetector):
        raise ValueError(f"{os.fspath(path)} must hold a model of entities; a {type(model).__name__} knows none")
    return model


def is_known(model: EntityDetector, entities: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether the model knows the entity of each row."""
    return np.asarray(model.entities_.find(check_ids(entities)) >= 0)


def about_new_entities(model: EntityDetector, entities: NDArray[Any]) -> str:
    """What a user should know of rows whose entities the model does not know; "" if there are none.

    Args:
        model: A fitted model.
        entities: The entity of each row.
    """
    new = ~is_known(model, entities)
    if not new.any():
        return ""
    ids = np.unique(entities[new])
    return about_new_rows(int(new.sum()), len(new), len(ids)) + _lost_zeros(model, ids)


def about_new_rows(new: int, rows: int, entities: int | None = None) -> str:
    """How many rows are of entities that the model does not know, and a warning if all are.

    Args:
        new: How many rows.
        rows: How many rows there are in all.
        entities: How many entities, if it is known.

    Example:
        >>> about_new_rows(20, 620, 1), about_new_rows(20, 620)
        ('20 rows of 1 entity that the model does not know', '20 rows of entities that the model does not know')
        >>> about_new_rows(20, 20, 3)
        'warning: all 20 rows are of entities that the model does not know; check the column of ids'
    """
    if new == rows:
        return f"warning: all {rows:,} rows are of entities that the model does not know; check the column of ids"
    named = "entities" if entities is None else f"{entities:,} entit{'y' if entities == 1 else 'ies'}"
    return f"{new:,} rows of {named} that the model does not know"


def _lost_zeros(model: EntityDetector, ids: NDArray[Any]) -> str:
    """A hint if ids that the model does not know differ from known ones by leading zeros."""
    known = model.entity_ids_
    if known.dtype.kind != "U":
        return ""
    padded = {entity.lstrip("0"): entity for entity in known.tolist() if entity.startswith("0")}
    found = [entity for entity in ids.tolist() if entity in padded]
    if not found:
        return ""
    lost = f"{len(found):,} of these entities would be known with leading zeros"
    return f"; {lost}, such as {padded[found[0]]!r} for {found[0]!r}: write the ids as in training"


def _flagged(entities: NDArray[Any], verdict: Verdict | None, known: NDArray[np.bool_]) -> Verdict:
    """The verdict on the rows of known entities, with those of unknown ones flagged in their places."""
    novelty, p_value = np.full(len(known), np.inf), np.full(len(known), np.nan)
    novel = np.ones(len(known), dtype=bool)
    if verdict is not None and verdict.p_value is not None:
        novelty[known], p_value[known], novel[known] = verdict.novelty, verdict.p_value, verdict.novel
    return Verdict(novelty=novelty, novel=novel, p_value=p_value, entity=np.asarray(entities))


def _at(rows: Any, where: NDArray[np.bool_]) -> Any:
    return _safe_indexing(rows, np.flatnonzero(where))
