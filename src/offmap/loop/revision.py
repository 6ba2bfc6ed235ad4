"""Which class each row of a lesson is learnt as: a group is named after a few of its rows, and others may differ."""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from offmap.loop.ledger import Ledger
from offmap.loop.propagation import propagate
from offmap.loop.state import Label

# What the name of a group counts for its rows, beside 1 for the row at its centre, which was read.
_NAMED = 0.05
# Rows beyond these are left out, the oldest first: all pairs of rows are compared.
_MOST = 6000


def revised(ledger: Ledger, lesson: Mapping[int, Label]) -> dict[int, Label]:
    """The classes of the rows of a lesson, and of earlier rows whose class is a different one now.

    Who names a group reads a few of its rows. The row at its centre, rows with a label of their own and rows that a
    person moved into the group keep their class. Others take the class that spreads to them from these and from taught
    rows, along links between neighbours in the whole stream; the name of their group counts less. Rows learnt earlier
    from a group are looked at again, since classes that are named later may be theirs. A new class that would become
    too small keeps its rows.

    Args:
        ledger: The world.
        lesson: Rows to be learnt, with the class that was named.
    """
    named = _of_groups(ledger, lesson)
    firm = _decided(ledger, named) | _centres(ledger, named)
    open_rows = [number for number in named if number not in firm][-_MOST:]
    if not open_rows:
        return dict(lesson)
    said = _taught(ledger) | {number: named[number] for number in named if number in firm}
    classes = sorted({*named.values(), *said.values()}, key=str)
    place = {label: code for code, label in enumerate(classes)}
    # Rows without a class have none to give, but classes spread through them.
    others = [number for number in ledger.state.rows if number not in named][-_MOST:]
    numbers = [*open_rows, *said, *others]
    known = [place[label] for label in [*(named[number] for number in open_rows), *said.values()]]
    codes = np.array([*known, *[0] * len(others)])
    weights = np.repeat([_NAMED, 1.0, 0.0], [len(open_rows), len(said), len(others)])
    rows = ledger.spread()[0].transform(ledger.memory.vectors(ledger.classifier, numbers))
    found = propagate(rows, codes, weights)[: len(open_rows)]
    new = dict(named) | {number: classes[code] for number, code in zip(open_rows, found, strict=True)}
    return _changes(ledger, lesson, named, new)


def _of_groups(ledger: Ledger, lesson: Mapping[int, Label]) -> dict[int, Label]:
    """Observed rows that are or were learnt, with the class they have now."""
    learnt = {number: label for number, label in ledger.state.taught.items() if number in ledger.state.rows}
    return learnt | dict(lesson)


def _decided(ledger: Ledger, numbers: Iterable[int]) -> set[int]:
    """Rows that a person labelled, or put into their group."""
    rows = ledger.state.rows
    return {number for number in numbers if rows[number].label is not None or rows[number].moved}


def _centres(ledger: Ledger, named: Mapping[int, Label]) -> set[int]:
    """The row nearest to the mean of each group, which whoever named it has read, if it was learnt as that class."""
    found = set()
    for group in ledger.state.groups.values():
        if group.status in ("named", "learnt") and group.rows:
            vectors = ledger.memory.vectors(ledger.classifier, group.rows).astype(np.float64)
            centre = group.rows[int(np.linalg.norm(vectors - vectors.mean(axis=0), axis=1).argmin())]
            if named.get(centre) == group.name:
                found.add(centre)
    return found


def _taught(ledger: Ledger) -> dict[int, Label]:
    """Rows that ``teach`` gave; at most as many per class as the spread takes."""
    kept: Counter[Label] = Counter()
    found: dict[int, Label] = {}
    for number, label in ledger.state.taught.items():
        if number not in ledger.state.rows and kept[label] < _MOST // max(len(ledger.classifier.classes_), 1):
            kept[label] += 1
            found[number] = label
    return found


def _changes(
    ledger: Ledger, lesson: Mapping[int, Label], named: Mapping[int, Label], new: Mapping[int, Label]
) -> dict[int, Label]:
    """Rows of the lesson with their new class, and earlier ones whose class changed."""
    known, counts = set(ledger.classifier.classes_.tolist()), Counter(new.values())
    small = {label for label in set(named.values()) if label not in known and counts[label] < _least(ledger)}
    kept = {number: named[number] if named[number] in small else label for number, label in new.items()}
    return {number: label for number, label in kept.items() if number in lesson or label != named[number]}


def _least(ledger: Ledger) -> int:
    return int(ledger.settings["min_group"])
