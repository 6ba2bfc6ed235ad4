"""From a model to the scores of rows."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from offmap.base import OpenSetClassifier
from offmap.calibration import SuggestedRate, assess_together, suggest_rate
from offmap.collaborative.base import EntityDetector
from offmap.data import Data, TableEncoder, TextEncoder
from offmap.data.cell_types import is_text, typed
from offmap.data.roles import Roles, names_beside
from offmap.data.table.columns import GAP
from offmap.estimator import encoder_of
from offmap.verdict import Verdict
from offmap.workflow.entities import NewEntities, assess_entities, suggest_for_entities
from offmap.workflow.fitting import Estimator, entities_of


def assess(model: Estimator, data: Data) -> Verdict:
    """Assesses each row once: what all commands read."""
    require_readable(model, data)
    rows = rows_for(model, data)
    return model.assess(rows, entities_of(model, data)) if isinstance(model, EntityDetector) else model.assess(rows)


def assess_with_known(
    model: Estimator, data: Data, known: Data, *, alpha: float | Literal["auto"] | None = None
) -> tuple[Verdict, SuggestedRate | None]:
    """Judges the rows together, beside rows of known classes that the model has not seen.

    Args:
        model: A fitted model.
        data: The rows, normal and novel ones as they come.
        known: The rows of known classes.
        alpha: False-alarm rate; by default the model's. "auto" takes the one that the rows suggest, which is then
            returned as well.
    """
    for given in (data, known):
        require_readable(model, given)
    verdict = assess_together(model, rows_for(model, data), rows_for(model, known), alpha=alpha)
    assert verdict.p_value is not None
    return verdict, suggest_rate(verdict.p_value) if alpha == "auto" else None


def at_suggested_rate(model: Estimator, data: Data) -> tuple[Estimator, SuggestedRate]:
    """The model at the false-alarm rate that the rows suggest, and what to expect of it; as it is if none is novel.

    Args:
        model: A fitted model.
        data: The rows, normal and novel ones as they come.
    """
    require_readable(model, data)
    rows = rows_for(model, data)
    if isinstance(model, EntityDetector):
        suggested = suggest_for_entities(model, rows, entities_of(model, data))
    else:
        suggested = model.suggest_alpha(rows)
    return (model.at(alpha=suggested.alpha) if suggested.novel_share else model), suggested


def score_rows(
    model: Estimator,
    data: Data,
    *,
    new_entities: NewEntities = "error",
    top: int | None = None,
    verdict: Verdict | None = None,
) -> pd.DataFrame:
    """Scores each row: novelty, p-value, whether it is flagged; from a classifier also label and closest class.

    What tells the rows apart (``data.identity``) stands before the scores.

    Args:
        model: A fitted model.
        data: The rows.
        new_entities: What to do with rows of entities that the model does not know.
        top: How many of the most novel rows to return, the most novel first; all rows in their order if None.
        verdict: What is made of the rows, if they were assessed already.

    Example:
        >>> from offmap.data import load
        >>> from offmap.workflow import configure, fit_model
        >>> digits = load("digits")
        >>> list(score_rows(fit_model(configure("msp", ["epochs=2"]), digits), digits))
        ['row', 'novelty', 'p_value', 'novel', 'label', 'closest']
    """
    places = np.arange(len(data))
    if verdict is None:
        verdict, places = assess_places(model, data, new_entities)
    frame = _beside(data.identity, places, verdict.to_frame())
    return frame if top is None else frame.iloc[verdict.top(top)]


def assess_places(
    model: Estimator, data: Data, new_entities: NewEntities = "error"
) -> tuple[Verdict, NDArray[np.intp]]:
    """Assesses each row once, those of entities that the model does not know as asked.

    Args:
        model: A fitted model.
        data: The rows.
        new_entities: What to do with rows of entities that the model does not know.

    Returns:
        The verdict, and the places of its rows in ``data``.
    """
    if isinstance(model, EntityDetector) and new_entities != "error":
        require_readable(model, data)
        return assess_entities(model, rows_for(model, data), entities_of(model, data), new_entities)
    return assess(model, data), np.arange(len(data))


def scoring_roles(model: Estimator, stated: Roles) -> tuple[Roles, list[str]]:
    """The roles of the columns of new rows, and those whose columns the rows may lack.

    Of the columns that the model remembers, it needs those that it reads; new rows have no labels as a rule. Columns
    that it knows by their texts stay texts, whatever the new cells look like: "1.0" is no number where "beta" was seen.

    Args:
        model: A fitted model, whose roles count where none is stated.
        stated: The roles that the caller states.
    """
    given = {name for name, value in stated.to_dict().items() if value not in (None, ())}
    lacking = {"label", "id", "keep", "drop", "only", "kind"} - given
    roles = Roles.remembered(_read_by(model)).but(stated)
    kinds = dict.fromkeys(_known_by_text(model, roles), "category") | dict(roles.kinds)
    return replace(roles, kinds=tuple(kinds.items())), sorted(lacking)


def _read_by(model: Estimator) -> dict[str, Any]:
    """The roles that the model remembers, without the features that its encoder left out, which rows may lack."""
    known, encoder = dict(getattr(model, "roles_", {})), encoder_of(model)
    if isinstance(encoder, TableEncoder):
        known["only"] = tuple(name for name in known.get("only", ()) if name in encoder.columns_)
    return known


def _known_by_text(model: Estimator, roles: Roles) -> Iterator[str]:
    """The columns of texts that the model knows, some of which may look like numbers or truth values."""
    encoder = encoder_of(model)
    for name, known in encoder.columns_.items() if isinstance(encoder, TableEncoder) else ():
        values = [value for value in known.get("values", ()) if value != GAP]
        if values and is_text(typed(pd.Series(values, dtype=object)).dtype):
            yield name
    names = model.entity_ids_ if isinstance(model, EntityDetector) else getattr(model, "classes_", np.empty(0))
    if roles.target is not None and names.dtype.kind in "UO":
        yield roles.target


def recalibrated(model: Estimator, data: Data) -> Estimator:
    """The model with threshold and p-values set by normal rows that it has not seen."""
    require_readable(model, data)
    rows = rows_for(model, data)
    if isinstance(model, EntityDetector):
        return model.recalibrate(rows, entities_of(model, data))
    return model.recalibrate(rows, data.y) if isinstance(model, OpenSetClassifier) else model.recalibrate(rows)


def entity_rows(model: EntityDetector, data: Data) -> tuple[Any, NDArray[Any]]:
    """The rows of a table as the model knows them, and the entity of each."""
    require_readable(model, data)
    return rows_for(model, data), entities_of(model, data)


def no_scores(model: Estimator, kept: list[str]) -> pd.DataFrame:
    """The scores of a table without rows."""
    none = np.empty(0)
    classified = isinstance(model, OpenSetClassifier)
    verdict = Verdict(
        novelty=none,
        novel=none.astype(bool),
        p_value=none if len(model.calibration_novelty_) else None,
        label=model.classes_[:0] if classified else None,
        closest=model.classes_[:0] if classified else None,
        entity=none if isinstance(model, EntityDetector) else None,
    )
    return _beside(pd.DataFrame(columns=kept), np.arange(0), verdict.to_frame())


def rows_for(model: Estimator, data: Data) -> Any:
    """Rows as the model knows them; the names of features are compared where both sides have them."""
    encoder = encoder_of(model)
    known = getattr(encoder if isinstance(encoder, TableEncoder) else model, "feature_names_in_", None)
    if known is None:
        return data.X
    if data.feature_names:
        return data.rows
    if data.X.ndim != 2 or data.X.shape[1] != len(known):
        width = " × ".join(map(str, data.X.shape[1:]))
        raise ValueError(f"X has {width} features, but {type(model).__name__} is expecting {len(known)}")
    return pd.DataFrame(data.X, columns=known)


def _beside(identity: pd.DataFrame | None, places: Any, scores: pd.DataFrame) -> pd.DataFrame:
    """The number of each row, what tells it apart, and its scores; a name that both have gets the prefix ``input_``."""
    numbered = pd.DataFrame({"row": places})
    if identity is None:
        return pd.concat([numbered, scores], axis=1)
    own = identity.iloc[places].reset_index(drop=True)
    own = own.set_axis(names_beside(own.columns, {"row", *scores.columns}), axis=1)
    return pd.concat([numbered, own, scores], axis=1)


def require_readable(model: Estimator, data: Data) -> None:
    """Refuses texts for a model of numbers, and the other way round."""
    encoder = encoder_of(model)
    if data.kind == "text" and (encoder is None or isinstance(encoder, TableEncoder)):
        raise ValueError(f"{data.name} holds texts, but the model was fitted on numbers")
    # What an encoder of another library reads, only that encoder knows.
    if data.kind != "text" and isinstance(encoder, TextEncoder):
        raise ValueError(
            f"{data.name} holds {data.kind}, but the model was fitted on texts; name their column with --text"
        )
