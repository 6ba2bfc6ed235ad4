"""From the journal to the state: which decisions stand, and what they add up to."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from offmap.loop.acts import Act
from offmap.loop.events import DECISIONS, FACTS, apply
from offmap.loop.state import State
from offmap.store import Entry, JournalUnreadable


@dataclass
class History:
    """The entries that count, the decisions that can be undone and redone, and the state that follows.

    Undoing a decision does not delete it: the journal gets an entry that says so, and the state is built again from
    the entries that stand. Numbers of groups and versions are never used again, those of undone decisions included.

    Args:
        entries: Every entry that may change the state, in order; an undo or redo only if rows were assessed again.
        done: Numbers of the decisions that stand, in order.
        undone: Numbers of the decisions that can be redone; the last one was undone last.
        acts: Every decision, undo and redo, in order.
        revision: Number of the last entry.
        state: What the entries that stand add up to.
        next_group: The number of the next group.
        next_version: The number of the next version.
    """

    entries: list[Entry] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    undone: list[int] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)
    revision: int = 0
    state: State = field(default_factory=State)
    next_group: int = 1
    next_version: int = 1

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "History":
        """Reads a journal."""
        history = cls()
        for entry in entries:
            history._register(entry)
        history.state = history.built(history.done)
        return history

    def add(self, entry: Entry) -> None:
        """Takes one more entry."""
        self._register(entry)
        if entry.kind in ("undone", "redone"):
            self.state = self.built(self.done)
        elif entry.kind != "created":
            apply(self.state, entry)

    def built(self, decisions: Iterable[int]) -> State:
        """The state if these decisions stand, beside all that the stream brought."""
        standing, state = set(decisions), State()
        for entry in self.entries:
            if entry.kind in FACTS or entry.number in standing:
                apply(state, entry)
        return state

    def decision(self, number: int) -> Entry:
        """The decision with that number."""
        return next(act.about for act in reversed(self.acts) if act.about.number == number)

    def _register(self, entry: Entry) -> None:
        about = entry
        if entry.kind == "undone":
            self.undone.append(self.done.pop())
            about = self.decision(self.undone[-1])
        elif entry.kind == "redone":
            self.done.append(self.undone.pop())
            about = self.decision(self.done[-1])
        if about is not entry:
            self.entries += [entry] if entry.content else []
        elif entry.kind in DECISIONS or entry.kind in FACTS:
            self.entries.append(entry)
            if entry.kind in DECISIONS:
                self.done.append(entry.number)
                self.undone.clear()
            self._count(entry)
        elif entry.kind != "created":
            raise JournalUnreadable(
                f"entry {entry.number} of the journal is of the unknown kind {entry.kind!r}; update offmap if a newer "
                "release wrote it"
            )
        self.revision = entry.number
        if entry.kind in DECISIONS or about is not entry:
            self.acts.append(Act(entry.number, entry.kind, about, entry.at))

    def _count(self, entry: Entry) -> None:
        made = [identity for identity, _ in (*entry.content.get("new", ()), *entry.content.get("parts", ()))]
        self.next_group = max([self.next_group, *(identity + 1 for identity in made)])
        if entry.kind in ("taught", "learnt"):
            self.next_version = max(self.next_version, entry.content["version"] + 1)
