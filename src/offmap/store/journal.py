"""What a journal is: the contract that SQLite obeys now, and that another database can obey in its place."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class JournalInUse(OSError):
    """Another process has the journal open."""


class JournalUnreadable(ValueError):
    """The journal is damaged, or a newer release wrote it."""


@dataclass(frozen=True)
class Entry:
    """One thing that happened.

    Args:
        number: Position in the journal, from 1.
        kind: What happened.
        content: Its details, as JSON holds them.
    """

    number: int
    kind: str
    content: Mapping[str, Any]


class Journal(Protocol):
    """An append-only list of entries, and of rows of bytes that entries refer to by number.

    One process writes at a time: opening a journal that another process has open raises ``JournalInUse``. ``append``
    returns when its entry and its rows are on disk, both or neither of them.
    """

    def append(self, kind: str, content: Mapping[str, Any], rows: Mapping[int, bytes] | None = None) -> Entry:
        """Writes one entry, and the rows that came with it under numbers that are not in use yet."""
        ...

    def entries(self) -> Iterator[Entry]:
        """All entries, in order."""
        ...

    def rows(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """The rows with these numbers."""
        ...

    def next_row(self) -> int:
        """The smallest number that is above those of all rows."""
        ...

    def close(self) -> None:
        """Lets go of the journal, so that another process can open it."""
        ...
