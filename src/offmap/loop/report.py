"""The status of a world: counts, the promise and what it needs, and what was decided."""

import math
from collections import Counter

from offmap.loop.history import History
from offmap.loop.ledger import Ledger
from offmap.loop.promise import AuditedRate, Calibration, measured, rows_needed
from offmap.loop.state import State
from offmap.loop.views import ActView, Status, sentence


def status_of(ledger: Ledger) -> Status:
    """Counts, the promise that holds now, and how many audit rows it asks for."""
    state = ledger.state
    version = state.versions[state.version] if state.version else None
    calibration = Calibration(**version.calibration) if version else None
    found = false_alarms(state)
    return Status(
        revision=ledger.history.revision,
        version=state.version,
        classes=len(version.classes) if version else 0,
        observed=len(state.rows),
        waiting=len(state.waiting()),
        groups=dict(Counter(group.status for group in state.groups.values() if group.rows or group.became)),
        to_learn=len(ledger.lesson()),
        reassigned=sum(map(state.reassigned, state.groups.values())),
        alpha=float(ledger.settings["classifier"]["parameters"]["alpha"]),
        promise_holds=bool(calibration and calibration.holds),
        promise=sentence(calibration, found),
        measured=found,
        audit_rows_needed=_audits_needed(state, calibration),
    )


def false_alarms(state: State) -> AuditedRate | None:
    """The rate on audit rows of known classes that the version in use assessed when they came."""
    if state.version is None:
        return None
    version = state.versions[state.version]
    classes = set(version.classes)
    judged = [row for number, row in state.rows.items() if number >= state.first_row and row.audited]
    known = [row for row in judged if row.label in classes and row.version == version.number]
    return measured(sum(row.novel for row in known), len(known))


def _audits_needed(state: State, calibration: Calibration | None) -> int:
    """How many rows to draw so that enough are of known classes, at the share of them among past audit rows."""
    if calibration is None or calibration.holds or calibration.expected is None:
        return 0
    labels = state.audited()
    classes = set(state.versions[state.version].classes) if state.version else set()
    known = sum(label in classes for label in labels.values())
    share = (known + 1) / (len(labels) + 2)
    return math.ceil(max(rows_needed(calibration.alpha) - known, 0) / share)


def acts_after(history: History, revision: int) -> list[ActView]:
    """What was decided after a revision, as a person reads it."""
    standing = set(history.done)
    return [
        ActView(act.number, act.kind, act.told(history.state), act.at, act.number in standing)
        for act in history.acts
        if act.number > revision
    ]
