"""From data to a model, from a model to scores: what the commands do, as functions."""

from offmap.outputs import require_writable, write_frame
from offmap.workflow.comparison import Standing, compare
from offmap.workflow.entities import NewEntities, add_entities, load_entity_model, remove_entities, update_entities
from offmap.workflow.evaluation import evaluate_model, try_held_out
from offmap.workflow.explanation import explain_rows, reasons_of
from offmap.workflow.fitting import (
    Estimator,
    configure,
    configure_all,
    fit_model,
    fit_stream,
    load_model,
    name_of,
    promise_of,
    save_model,
    summary_of,
)
from offmap.workflow.information import information_on
from offmap.workflow.scoring import (
    assess,
    assess_with_known,
    at_suggested_rate,
    entity_rows,
    no_scores,
    recalibrated,
    score_rows,
    scoring_roles,
)

__all__ = [
    "Estimator",
    "NewEntities",
    "Standing",
    "add_entities",
    "assess",
    "assess_with_known",
    "at_suggested_rate",
    "compare",
    "configure",
    "configure_all",
    "entity_rows",
    "evaluate_model",
    "explain_rows",
    "fit_model",
    "fit_stream",
    "information_on",
    "load_entity_model",
    "load_model",
    "name_of",
    "no_scores",
    "promise_of",
    "reasons_of",
    "recalibrated",
    "remove_entities",
    "require_writable",
    "save_model",
    "score_rows",
    "scoring_roles",
    "summary_of",
    "try_held_out",
    "update_entities",
    "write_frame",
]
