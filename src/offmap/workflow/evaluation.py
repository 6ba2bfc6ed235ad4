"""How well a model tells novel rows from normal ones."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from offmap.base import OpenSetClassifier
from offmap.collaborative.base import EntityDetector
from offmap.data import Data
from offmap.data.roles import Roles
from offmap.data.splits import hold_out_classes
from offmap.metrics import open_set_summary
from offmap.report import Sample, Section, section_of
from offmap.verdict import Verdict
from offmap.workflow.explanation import telling
from offmap.workflow.fitting import Estimator, fit_model, name_of
from offmap.workflow.scoring import assess, rows_for


class Trial(NamedTuple):
    """A model that was fitted without some classes, and how well it notices them."""

    model: Estimator
    section: Section


def evaluate_model(model: Estimator, normal: Data, novel: Data, *, reasons: bool = False) -> Section:
    """Measures how well normal and novel rows are told apart; with labels, how well a classifier labels them too.

    Args:
        model: A fitted model.
        normal: Normal rows.
        novel: Novel rows.
        reasons: Whether to say why the rows that are shown are novel, compared with the normal rows.
    """
    normal_verdict, novel_verdict = assess(model, normal), assess(model, novel)
    labelled = {} if normal.y is None else _labelled_rightly(model, normal, normal_verdict, novel_verdict)
    reasons = reasons and not normal_verdict.novel.all()
    samples = (
        Sample(
            verdict,
            rows_for(model, data),
            None if isinstance(model, EntityDetector) else data.y,
            telling(model, data, normal) if reasons else None,
            None if data.kind == "text" else data.identity,
        )
        for verdict, data in ((normal_verdict, normal), (novel_verdict, novel))
    )
    return section_of(model, *samples, name=name_of(model), metrics=labelled)


def try_held_out(
    estimator: Estimator, data: Data, classes: Sequence[str], roles: Roles | None = None, seed: int = 0
) -> Trial:
    """Fits a method without the rows of some classes, and measures how well it notices them.

    A third of the rows of the other classes is not fitted either: they are the normal rows of the test.

    Args:
        estimator: The method.
        data: Rows with labels.
        classes: The labels to hold out.
        roles: What the columns of the table were for.
        seed: Seed of the split.
    """
    train, normal, novel = held_out_parts(data, classes, seed)
    model = fit_model(estimator, train, roles)
    return Trial(model, evaluate_model(model, normal, novel))


def held_out_parts(data: Data, classes: Sequence[str], seed: int) -> tuple[Data, Data, Data]:
    """Training rows and test rows of the known classes, and all rows of the held-out ones."""
    if data.y is None:
        raise ValueError(f"holding out a class needs labels, and {data.name} has none; a table needs --label COLUMN")
    labels = [str(label) for label in data.y.tolist()]
    if absent := [name for name in classes if name not in labels]:
        found = ", ".join(sorted(set(labels))[:10])
        raise ValueError(f"the class to hold out must be one of {found}; got {absent[0]!r}")
    known = data.y[~np.isin(labels, list(classes))]
    if not len(known):
        raise ValueError("all classes are held out; leave at least one to learn")
    split = hold_out_classes(np.arange(len(data))[:, None], data.y, known=np.unique(known), test_size=1 / 3, seed=seed)
    test = split.X_test[:, 0]
    return data.part(split.X_train[:, 0]), data.part(test[~split.unknown]), data.part(test[split.unknown])


def _labelled_rightly(model: Estimator, normal: Data, known: Verdict, unknown: Verdict) -> dict[str, float]:
    """How often a classifier labels the rows right: known ones by their class, novel ones as unknown."""
    if not isinstance(model, OpenSetClassifier) or normal.y is None or known.label is None or unknown.label is None:
        return {}
    if strange := sorted(set(normal.y.tolist()) - set(model.classes_.tolist()), key=str):
        raise ValueError(f"the normal rows of {normal.name} have the label {strange[0]!r}, which was never taught")
    truth = [*normal.y.tolist(), *[model.unknown_label_] * len(unknown)]
    answers = [*known.label.tolist(), *unknown.label.tolist()]
    found = open_set_summary(truth, answers, model.classes_, model.unknown_label_)
    closed = float(np.mean(known.closest == normal.y))
    return {"known_accuracy": closed, "open_accuracy": found["accuracy"], "open_f1": found["f1"]}
