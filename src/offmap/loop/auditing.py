"""Random rows of the stream for a person to label."""

import numpy as np

from offmap.loop.ledger import Ledger
from offmap.loop.state import State
from offmap.loop.views import AuditRow


def draw(ledger: Ledger, count: int) -> list[AuditRow]:
    """Audit rows without a label: those drawn before, then new ones, until there are ``count``."""
    pending = [number for number, row in ledger.state.rows.items() if row.audited and row.label is None]
    free = auditable(ledger.state)
    rng = np.random.default_rng([ledger.settings["seed"], len(ledger.history.entries)])
    wanted = min(max(count - len(pending), 0), len(free))
    drawn = sorted(rng.choice(free, wanted, replace=False).tolist()) if wanted else []
    if drawn:
        ledger.record("audited", {"rows": drawn})
    chosen = [*pending, *drawn][:count]
    rows = ledger.memory.rows(chosen) if chosen else ()
    return [AuditRow(ledger.state.rows[number].id, row) for number, row in zip(chosen, rows, strict=True)]


def auditable(state: State) -> list[int]:
    """Rows observed since the last version that are no audit rows yet: a random one of them is one of the stream.

    Rows that a person has labelled already count too: to leave them out would leave out what is unusual.
    """
    return [number for number, row in state.rows.items() if number >= state.first_row and not row.audited]


def new_audits(state: State) -> list[int]:
    """Labelled audit rows that did not set the threshold in use."""
    used = set(state.versions[state.version].audits) if state.version else set()
    return [number for number in state.audited() if number not in used]
