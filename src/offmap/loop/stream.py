"""Rows of the stream: assessed by the model in use, and kept."""

from collections.abc import Iterable
from typing import Any

from offmap.loop import checks
from offmap.loop.ledger import Ledger
from offmap.loop.rows import as_given, pack
from offmap.loop.state import Label
from offmap.verdict import Verdict


def observe(ledger: Ledger, X: Any, ids: Iterable[Label] | None) -> Verdict:
    """Assesses rows and keeps those that were not observed before."""
    given = None if ids is None else list(ids)
    ledger.refresh()
    rows = as_given(X, ledger.state.columns)
    packed = pack(rows)
    # Outside the turn, since this takes the time: others may act meanwhile.
    version, verdict = ledger.state.version, ledger.classifier.assess(rows)
    with ledger.turn():
        if ledger.state.version != version:
            verdict = ledger.classifier.assess(rows)
        _keep(ledger, verdict, packed, given)
    return verdict


def _keep(ledger: Ledger, verdict: Verdict, packed: list[bytes], ids: list[Label] | None) -> None:
    first = ledger.journal.next_row()
    names = checks.ids_of(len(packed), ids, ledger.state, first)
    fresh = checks.new_rows(names, packed, ledger.state, ledger.journal)
    numbers = range(first, first + len(fresh))
    if fresh:
        content = {"rows": [*numbers], "ids": [names[place] for place in fresh], "version": ledger.state.version}
        payload = {number: packed[place] for number, place in zip(numbers, fresh, strict=True)}
        ledger.record("observed", content | ledger.columns(verdict, fresh), payload)
