"""Versions of the model: taught by labelled rows, learnt from what was named, and rolled back."""

import copy
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from offmap.labels import check_labels
from offmap.loop import checks
from offmap.loop.auditing import new_audits
from offmap.loop.configuration import restore
from offmap.loop.ledger import Ledger
from offmap.loop.promise import leaves_out
from offmap.loop.rows import as_given, pack
from offmap.loop.state import Label


def teach(ledger: Ledger, X: Any, y: ArrayLike) -> int:
    """Learns labelled rows that are a random sample of their classes, and returns the new version."""
    rows = as_given(X)
    model = copy.deepcopy(ledger.classifier) if ledger.state.version else restore(ledger.settings["classifier"])
    labels = check_labels(model, rows, y)
    model.partial_fit(rows, labels)
    first = ledger.journal.next_row()
    numbers = range(first, first + len(rows))
    lesson = dict(zip(numbers, labels.tolist(), strict=True))
    return ledger.new_version("taught", model, lesson, dict(zip(numbers, pack(rows), strict=True)))


def learn(ledger: Ledger) -> int:
    """Teaches named groups and labelled rows to the model, sets its threshold anew, and returns the new version."""
    rows = ledger.lesson()
    if not rows and not new_audits(ledger.state):
        raise ValueError(checks.nothing_to_learn(ledger.state, ledger.settings["min_group"]))
    model = copy.deepcopy(ledger.classifier)
    misfits = _misfits(ledger, rows) if rows and leaves_out(model) else []
    rows = {number: label for number, label in rows.items() if number not in misfits}
    # Without new rows the held-out ones are scored again all the same, so that audit rows can set the threshold.
    if rows:
        labels = np.asarray(list(rows.values()))
        model.partial_fit(ledger.memory.rows(list(rows)), labels, calibrate=False)
    else:
        model.calibrate_again()
    return ledger.new_version("learnt", model, rows, released=misfits)


def _misfits(ledger: Ledger, rows: Mapping[int, Label]) -> list[int]:
    """Rows of named groups that fit another class better once all of them are learnt.

    Who names a group reads a few of its rows. A row that would be taken for another class, had it not been learnt
    itself, is left out and waits again. Rows with a label of their own stay, and so does a new class that would become
    too small.
    """
    numbers, labels = list(rows), np.asarray(list(rows.values()))
    X = ledger.memory.rows(numbers)
    trial: Any = copy.deepcopy(ledger.classifier).partial_fit(X, labels, calibrate=False)
    firm = np.array([ledger.state.rows[number].label is not None for number in numbers])
    fits = firm | (trial.left_out_classes(X, labels) == labels)
    counts = Counter(labels[fits].tolist())
    known, least = set(ledger.classifier.classes_.tolist()), ledger.settings["min_group"]
    small = [label for label in np.unique(labels).tolist() if label not in known and counts[label] < least]
    return [numbers[place] for place in np.flatnonzero(~fits & ~np.isin(labels, small))]


def rollback(ledger: Ledger, version: int) -> None:
    """Returns to an earlier version of the model."""
    model = checks.earlier_version(ledger.state, version)
    later = [number for number, row in ledger.state.rows.items() if row.version > version]
    content = {
        "version": version,
        "assessed": ledger.assessed(ledger.home.read_model(model), later),
    }
    ledger.record("rolled back", content)
