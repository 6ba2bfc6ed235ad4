"""From data to a model, from a model to scores: what the commands do, as functions."""

from offmap.outputs import require_writable, write_frame
from offmap.workflow.comparison import Standing, compare
from offmap.workflow.entities import NewEntities, add_entities, remove_entities, update_entities
from offmap.workflow.evaluation import evaluate_model, try_held_out
from offmap.workflow.fitting import Estimator, configure, fit_model, load_model, name_of, promise_of, summary_of
from offmap.workflow.information import information_on
from offmap.workflow.scoring import assess, no_scores, score_rows

__all__ = [
    "Estimator",
    "NewEntities",
    "Standing",
    "add_entities",
    "assess",
    "compare",
    "configure",
    "evaluate_model",
    "fit_model",
    "information_on",
    "load_model",
    "name_of",
    "no_scores",
    "promise_of",
    "remove_entities",
    "require_writable",
    "score_rows",
    "summary_of",
    "try_held_out",
    "update_entities",
    "write_frame",
]
