"""What people decided in a world, and what its stream brought, as lists that a page can show."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.arrays import FloatArray
from offmap.loop.events import DECISIONS
from offmap.loop.world import OpenWorld


@dataclass(frozen=True)
class Decision:
    """One decision of the journal.

    Args:
        number: Number of its entry.
        kind: What was done, such as "named".
        content: Its details.
        at: When, in UTC, as ISO 8601 writes it.
        stands: Whether it counts; otherwise it was undone.
        undo_steps: How many undos take it back, with all that came after it; 0 if it does not stand.
        redo_steps: How many redos bring it back; 0 if it stands, or other decisions took its place.
    """

    number: int
    kind: str
    content: Mapping[str, Any]
    at: str
    stands: bool
    undo_steps: int
    redo_steps: int


def decisions(world: OpenWorld, limit: int | None = None) -> list[Decision]:
    """Decisions of a world, the last one first; undone ones are among them.

    Args:
        world: The world.
        limit: At most so many.
    """
    history = world._ledger.history
    undo = {number: steps for steps, number in enumerate(reversed(history.done), start=1)}
    redo = {number: steps for steps, number in enumerate(reversed(history.undone), start=1)}
    found: list[Decision] = []
    for entry in reversed(history.entries):
        if len(found) == limit:
            break
        if entry.kind in DECISIONS:
            steps, again = undo.get(entry.number, 0), redo.get(entry.number, 0)
            found.append(Decision(entry.number, entry.kind, entry.content, entry.at, steps > 0, steps, again))
    return found


@dataclass(frozen=True, eq=False)
class Stream:
    """What the model said of each observed row when it came, in the order of the rows.

    Args:
        numbers: Number of each row.
        novel: Whether it was rejected.
        p_value: Its p-value; NaN without one.
        novelty: Its novelty; NaN if it is not finite.
        version: The version that assessed it.
    """

    numbers: NDArray[np.int64]
    novel: NDArray[np.bool_]
    p_value: FloatArray
    novelty: FloatArray
    version: NDArray[np.int64]

    def of_version(self, version: int | None) -> "Stream":
        """The rows that one version assessed when they came."""
        kept = self.version == version
        return Stream(self.numbers[kept], self.novel[kept], self.p_value[kept], self.novelty[kept], self.version[kept])


def stream(world: OpenWorld) -> Stream:
    """The stream of a world, as its journal has it."""
    entries = [entry.content for entry in world._ledger.history.entries if entry.kind == "observed"]
    columns = {
        name: [value for content in entries for value in content[name]]
        for name in ("rows", "novel", "p_value", "novelty")
    }
    version = [content["version"] for content in entries for _ in content["rows"]]
    return Stream(
        numbers=np.array(columns["rows"], np.int64),
        novel=np.array(columns["novel"], bool),
        p_value=np.array(columns["p_value"], np.float64),
        novelty=np.array(columns["novelty"], np.float64),
        version=np.array(version, np.int64),
    )
