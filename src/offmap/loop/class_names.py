"""Names that people give to classes: of the type of the known ones, and told apart by more than case."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.errors import short_repr
from offmap.loop.ledger import Ledger
from offmap.loop.rows import require_encodable
from offmap.loop.state import Label

LONGEST = 200
"""Most characters in the name of a new class."""
_EMPTY = "label is empty; give the class a name"


def checked_label(ledger: Ledger, label: Label, *, group: int | None = None, row: int | None = None) -> Label:
    """The class that a person means, a new one or one that exists.

    Args:
        ledger: The world.
        label: What the person calls it.
        group: The group that is called so from now on; its present name does not count.
        row: The number of the row that is called so from now on, likewise.
    """
    classes, unknown = ledger.classifier.classes_, ledger.classifier.unknown_label_
    strings = classes.dtype.kind in "UO"
    if isinstance(label, bool) or isinstance(label, str) != strings or not isinstance(label, str | int | np.integer):
        kind = "a string" if strings else "an integer"
        raise ValueError(f"label must be {kind}, as the known classes are; got {label!r}")
    if not isinstance(label, str):
        return _checked_number(int(label), unknown)
    known = classes.tolist()
    # Most labels are known classes, and to collect the others takes a pass over all rows.
    given = [] if label in known else [str(name) for name in ledger.state.given_names(group, row)]
    return _checked_name(label, known, given, str(unknown))


def checked_lesson(ledger: Ledger, labels: NDArray[Any]) -> NDArray[Any]:
    """The classes of a lesson; new ones must be names that a person may give.

    The first lesson may hold classes with spaces around them, or that differ in case alone, as files have them.
    """
    given, first = list(dict.fromkeys(labels.tolist())), ledger.state.version is None
    if not all(isinstance(label, str) for label in given):
        return labels
    if first or ledger.classifier.classes_.dtype.kind not in "UO":
        for label in given:
            _require_name(label.strip())
        return labels
    known = set(ledger.classifier.classes_.tolist())
    names = {label: checked_label(ledger, label) for label in given if label not in known}
    if all(label == name for label, name in names.items()):
        return labels
    return np.array([names.get(label, label) for label in labels.tolist()], dtype=labels.dtype)


def _require_name(name: str) -> None:
    if not name:
        raise ValueError(_EMPTY)
    if len(name) > LONGEST:
        raise ValueError(f"label {short_repr(name)} has {len(name):,} characters; a name has at most {LONGEST}")


def _checked_number(label: int, unknown: Label) -> int:
    if label == unknown:
        raise ValueError(f"label {label} is what unknown rows are called; choose another")
    if not -(2**63) <= label < 2**63:
        raise ValueError(f"label must be an integer of 64 bits; got {label}")
    return label


def _checked_name(label: str, known: Sequence[str], given: Sequence[str], unknown: str) -> str:
    name, existing = require_encodable("label", label.strip()), [*known, *given]
    if not name:
        raise ValueError(_EMPTY)
    if name.endswith("\0"):
        raise ValueError(f"label {name!r} must not end in NUL, which NumPy drops; choose another")
    # Classes of a file may have spaces around them, which nobody types.
    if same := [other for other in existing if other.strip() == name]:
        return label if label in same else same[0]
    _require_name(name)
    if _folded(name) == _folded(unknown):
        raise ValueError(f"label {name!r} is what unknown rows are called; choose another")
    alike = [other for other in existing if _folded(other) == _folded(name)]
    if alike and not _case_counts(known):
        raise ValueError(
            f"label {name!r} differs from the class {alike[0]!r} only in case; use {alike[0]!r}, or a clearly "
            "different name"
        )
    return name


def _case_counts(known: Sequence[str]) -> bool:
    """Whether known classes differ in case alone, as letters do: then new ones may as well."""
    return len({name.casefold() for name in known}) < len(known)


def _folded(name: str) -> str:
    return name.strip().casefold()
