"""What a world refuses: one clear error each, and the journal stays as it was."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from offmap.loop import OpenWorld

BAD: dict[str, tuple[Callable[[OpenWorld], Any], str]] = {
    "naming an unknown group": (lambda world: world.name(99, 3), "there is no group 99"),
    "merging a group with itself": (lambda world: world.merge(1, 1), "cannot be merged with itself"),
    "the unknown label": (lambda world: world.name(1, -1), "what unknown rows are called"),
    "a label of another type": (lambda world: world.name(1, "seven"), "must be an integer"),
    "a truth value as a label": (lambda world: world.label(91, True), "must be an integer"),
    "nothing named": (lambda world: world.learn(), "nothing to learn"),
    "an unknown row": (lambda world: world.label("nobody", 3), "no row with the id 'nobody'"),
    "a version of the future": (lambda world: world.rollback(7), "version must be one of"),
    "no audit rows": (lambda world: world.audit(0), "n must be"),
    "too few ids": (lambda world: world.observe([[0.0, 0.0]], ids=[]), "one id per row"),
    "ids of another type": (lambda world: world.observe([[0.0, 0.0]], ids=[True]), "integers or strings"),
    "rows of another width": (lambda world: world.observe([[0.0]]), "features"),
    "NaN": (lambda world: world.observe([[0.0, np.nan]]), "NaN"),
    "one text": (lambda world: world.observe("hello"), "one text"),
    "no rows": (lambda world: world.observe([]), "at least one row"),
    "a list as a group": (lambda world: world.name([1], 3), r"there is no group \[1\]"),  # type: ignore[arg-type]
    "a truth value as a group": (lambda world: world.name(True, 3), "there is no group True"),
    "a label beyond 64 bits": (lambda world: world.name(1, 10**30), "an integer of 64 bits"),
    "a broken character in an id": (lambda world: world.observe([[0.0, 0.0]], ids=["\ud800"]), "broken character"),
    "a revision that is no number": (lambda world: world.name(1, 3, expected="3"), "expected must be"),  # type: ignore[arg-type]
    "a status that does not exist": (lambda world: world.groups("opn"), "statuses must be"),  # type: ignore[arg-type]
    "a limit below one": (lambda world: world.groups(limit=-1), "limit must be"),
    "no ids to look up": (lambda world: world.rows([]), "at least one row"),
    "a text that is missing": (lambda world: world.observe(["a text", float("nan")]), r"X\[1\] is nan, a float"),
    "labels of another length": (lambda world: world.teach([[0.0, 0.0]], [1, 2]), "inconsistent"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_error_and_the_journal_stays(world: OpenWorld, case: str) -> None:
    act, message = BAD[case]
    before, entries = world.state.to_bytes(), len(list(world._ledger.journal.entries()))
    with pytest.raises(ValueError, match=message):
        act(world)
    assert world.state.to_bytes() == before
    assert len(list(world._ledger.journal.entries())) == entries
