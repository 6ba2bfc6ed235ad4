"""What a person sees of a world: groups, audit rows and the status."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.loop.joining import joined_class
from offmap.loop.naming import telling_words
from offmap.loop.portraits import Portrait
from offmap.loop.promise import AuditedRate, Calibration
from offmap.loop.spread import Spread, distances
from offmap.loop.state import Group, GroupStatus, Label, State


@dataclass(frozen=True)
class GroupView:
    """One group, as a person sees it.

    Args:
        id: Its number, never used again.
        size: Number of rows.
        rows: Ids of its rows, from the centre to the edge.
        telling: Words or features that set it apart.
        nearest_class: The known class that it is most like.
        joins_class: Whether it looks like a part of that class, such as its missing edge, rather than a new class.
        sure: How clearly it stands apart from other groups and classes, from 0 to 1.
        status: "open", "skipped", "named", "learnt" or "discarded".
        name: The class that a person named.
        reassigned: Rows of a learnt group that were learnt as another class than its name.
    """

    id: int
    size: int
    rows: tuple[Label, ...]
    telling: tuple[str, ...]
    nearest_class: Label
    joins_class: bool
    sure: float
    status: GroupStatus
    name: Label | None
    reassigned: int

    @property
    def suggestions(self) -> tuple[Label, ...]:
        """Names to offer: the class if the group joins it, then telling words."""
        words = () if isinstance(self.nearest_class, int) else self.telling
        return (*((self.nearest_class,) if self.joins_class else ()), *words)


@dataclass(frozen=True)
class AuditRow:
    """A random row of the stream, to be labelled."""

    id: Label
    row: Any


@dataclass(frozen=True)
class ActView:
    """One decision, undo or redo, as a person reads it.

    Args:
        number: The revision that it made.
        kind: "named", "merged", "learnt", "undone", …
        sentence: What was done.
        at: When, in UTC, as ISO 8601 writes it.
        stands: Whether it is a decision that counts, and was not undone.
    """

    number: int
    kind: str
    sentence: str
    at: str
    stands: bool


@dataclass(frozen=True)
class Status:
    """The state of a world: its version, what waits, and whether its promise holds.

    Args:
        revision: Number of acts and observations so far; an act takes it as ``expected``.
        version: The version of the model in use; None before the first lesson.
        classes: Number of known classes.
        observed: Rows observed so far.
        waiting: Unusual rows that nobody has dealt with.
        groups: Number of groups by status; a group that has no rows left counts only if it was merged or split.
        to_learn: Rows that ``learn`` would add; those of classes that are still too small are not counted.
        reassigned: Rows of named groups that were learnt as another class, since they lie among its rows.
        alpha: The false-alarm rate that was asked for.
        promise_holds: Whether the threshold keeps that rate.
        promise: The promise in a sentence.
        measured: The false-alarm rate on audit rows that set no threshold.
        audit_rows_needed: How many more audit rows to label so that the rate can be kept.
    """

    revision: int
    version: int | None
    classes: int
    observed: int
    waiting: int
    groups: dict[str, int]
    to_learn: int
    reassigned: int
    alpha: float
    promise_holds: bool
    promise: str
    measured: AuditedRate | None
    audit_rows_needed: int


def sentence(calibration: Calibration | None, found: AuditedRate | None) -> str:
    """The promise in a sentence, with what was measured."""
    if calibration is None:
        return "nothing is promised: no classes were taught yet"
    after = "" if found is None else f"; measured {found}"
    if calibration.expected is None:
        return f"no false-alarm rate is promised by the method's own rule{after}"
    if calibration.uncovered:
        classes = "1 learnt class" if calibration.uncovered == 1 else f"{calibration.uncovered} learnt classes"
        return f"not promised for {classes}: label audit rows and learn again{after}"
    rate, low, high = calibration.expected
    if calibration.estimated:
        source = f"estimated from {calibration.rows:,} audit rows of known classes and the stream"
        return f"about {calibration.alpha:.1%} [{low:.1%}, {high:.1%}] false alarms, {source}{after}"
    source = "audit" if calibration.on_audit_rows else "held-out"
    within = f"{rate:.1%} [{low:.1%}, {high:.1%}] expected from {calibration.rows:,} {source} rows"
    if calibration.missing:
        return f"at most {1 / (calibration.rows + 1):.1%}, not {calibration.alpha:.1%}: too few rows; {within}{after}"
    return f"at most {calibration.alpha:.1%} false alarms; {within}{after}"


def view(
    groups: list[Group],
    portraits: list[Portrait],
    state: State,
    limit: float,
    spread: Spread,
    classes: list[Label],
) -> list[GroupView]:
    """Views of groups, in their order.

    Args:
        groups: The groups; none is empty.
        portraits: What each is like by itself.
        state: What is known of the groups and of each row.
        limit: Rows with a p-value up to this one wait.
        spread: The known classes.
        classes: Their names, in the order of the codes of ``spread``.
    """
    if not groups:
        return []
    centres = np.stack([portrait.centre for portrait in portraits])
    words = telling_words({group.id: portrait.words for group, portrait in zip(groups, portraits, strict=True)})
    all_centres = np.concatenate([centres, spread.centres]).astype(np.float32)
    to_classes = distances(centres, spread.centres)
    nearest = to_classes.argmin(axis=1)
    edge = to_classes.min(axis=1) < 0.5 * np.array([spread.apart(code) for code in nearest])
    rows = state.rows
    joined = [joined_class([rows[number] for number in group.rows], limit) for group in groups]
    return [
        GroupView(
            id=group.id,
            size=len(group.rows),
            rows=tuple(rows[number].id for number in portrait.numbers),
            telling=portrait.features or tuple(words[group.id]),
            nearest_class=classes[nearest[place]] if (label := joined[place]) is None else label,
            joins_class=label is not None or bool(edge[place]),
            sure=_clearness(portrait, all_centres, place),
            status=group.status,
            name=group.name,
            reassigned=state.reassigned(group),
        )
        for place, (group, portrait) in enumerate(zip(groups, portraits, strict=True))
    ]


def _clearness(portrait: Portrait, centres: NDArray[np.float32], own: int) -> float:
    """How much nearer its rows lie to their own centre than to any other, as a mean from 0 to 1."""
    away = distances(portrait.members, centres)
    away[:, own] = np.inf
    return float(np.clip(1 - portrait.own / away.min(axis=1), 0, 1).mean())
