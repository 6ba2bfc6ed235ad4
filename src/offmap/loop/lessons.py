"""Versions of the model: taught by labelled rows, learnt from what was named, and rolled back."""

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offmap.data.roles import Roles
from offmap.labels import check_labels
from offmap.loop import checks
from offmap.loop.auditing import new_audits
from offmap.loop.class_names import checked_lesson
from offmap.loop.configuration import restore
from offmap.loop.ledger import Ledger
from offmap.loop.promise import forgets_rows, leaves_out
from offmap.loop.revision import revised
from offmap.loop.rows import as_given, columns_of, pack
from offmap.openset.incremental import IncrementalClassifier


def teach(ledger: Ledger, X: Any, y: ArrayLike) -> int:
    """Learns labelled rows that are a random sample of their classes, and returns the new version."""
    rows = as_given(X, ledger.state.columns)
    model = copy.deepcopy(ledger.classifier) if ledger.state.version else restore(ledger.settings["classifier"])
    labels = checked_lesson(ledger, _whole(check_labels(model, rows, y)))
    model.partial_fit(rows, labels)
    first = ledger.journal.next_row()
    numbers = range(first, first + len(rows))
    lesson = dict(zip(numbers, labels.tolist(), strict=True))
    return ledger.new_version("taught", model, lesson, dict(zip(numbers, pack(rows), strict=True)), columns_of(X))


def _whole(labels: NDArray[Any]) -> NDArray[Any]:
    """Classes written as 1.0 as the integers that they are: one such lesson would make floats of all classes."""
    if labels.dtype.kind != "f":
        return labels
    if np.abs(labels).max() >= 2**53:
        raise ValueError(f"y holds the class {np.abs(labels).max():g}, which has too many digits; give strings")
    return labels.astype(np.int64)


def with_names(ledger: Ledger, model: IncrementalClassifier) -> IncrementalClassifier:
    """A version of the model, to be used outside the world, that finds its features by name if names were taught."""
    named = copy.copy(model)
    if ledger.state.columns is not None:
        named.feature_names_in_ = np.array(ledger.state.columns, dtype=object)
        named.roles_ = Roles(only=tuple(ledger.state.columns)).to_dict()
    return named


def learn(ledger: Ledger) -> int:
    """Teaches named groups and labelled rows to the model, sets its threshold anew, and returns the new version."""
    rows = ledger.lesson()
    if not rows and not new_audits(ledger.state):
        least, audits = ledger.settings["min_group"], leaves_out(ledger.classifier)
        raise ValueError(checks.nothing_to_learn(ledger.state, least, audits))
    model: Any = copy.deepcopy(ledger.classifier)
    if ledger.settings["reassign"] and forgets_rows(model):
        rows = revised(ledger, rows)
    # Without new rows the held-out ones are scored again all the same, so that audit rows can set the threshold.
    if rows:
        X, labels = ledger.memory.rows(list(rows)), np.asarray(list(rows.values()))
        model.partial_fit(X, labels, calibrate=False)
        old = [ledger.state.taught.get(number) for number in rows]
        again = np.array([label is not None for label in old])
        if again.any():
            model.remove_rows(X[again], [label for label in old if label is not None])
    else:
        model.calibrate_again()
    return ledger.new_version("learnt", model, rows)


def rollback(ledger: Ledger, version: int) -> None:
    """Returns to an earlier version of the model."""
    model = checks.earlier_version(ledger.state, version)
    later = [number for number, row in ledger.state.rows.items() if row.version > version]
    content = {
        "version": version,
        "assessed": ledger.assessed(ledger.home.read_model(model), later),
    }
    ledger.record("rolled back", content)
