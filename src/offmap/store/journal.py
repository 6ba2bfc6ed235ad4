"""What a journal is: the contract that SQLite and PostgreSQL obey."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


class JournalInUse(OSError):
    """Another process has the journal, and did not let go of it in time."""


class JournalMoved(OSError):
    """The journal has entries that the caller has not seen, so that nothing was appended."""


class JournalUnreadable(ValueError):
    """The journal is damaged, or a newer release wrote it."""


@dataclass(frozen=True)
class Entry:
    """One thing that happened.

    Args:
        number: Position in the journal, from 1.
        kind: What happened.
        content: Its details, as JSON holds them.
        at: When it was written, in UTC, as ISO 8601 writes it.
    """

    number: int
    kind: str
    content: Mapping[str, Any]
    at: str = field(default="", repr=False, compare=False)


class Journal(Protocol):
    """An append-only list of entries, and of rows of bytes that entries refer to by number.

    ``append`` returns when its entry and its rows are on disk, both or neither of them.
    """

    def turn(self) -> AbstractContextManager[None]:
        """Keeps other processes from appending while the block runs; raises ``JournalInUse`` after too long a wait."""
        ...

    def append(
        self, kind: str, content: Mapping[str, Any], rows: Mapping[int, bytes] | None = None, *, after: int
    ) -> Entry:
        """Writes one entry, and the rows that came with it under numbers that are not in use yet.

        Args:
            kind: What happened.
            content: Its details.
            rows: New rows by number.
            after: Number of the last entry that the caller has seen. If there are later ones, nothing is written and
                ``JournalMoved`` is raised.
        """
        ...

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """The entries with a number above ``after``, in order."""
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


class Files(Protocol):
    """Files beside a journal, by name."""

    def writing(self, name: str) -> AbstractContextManager[Path]:
        """A path to write to; what is there when the block ends is kept under ``name``, in place of what was."""
        ...

    def reading(self, name: str) -> AbstractContextManager[Path]:
        """The path of a kept file, for as long as the block runs; ``FileNotFoundError`` if there is none."""
        ...

    def discard(self, name: str) -> None:
        """Removes what was written in a turn whose entry could not be appended; nothing if there is no such file."""
        ...


def encoded(content: Mapping[str, Any]) -> str:
    """Details of an entry as the database keeps them; what JSON has no word for is refused."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def require_seen(where: object, last: int, after: int) -> None:
    """Refuses to append after an entry that is not the last one."""
    if last != after:
        raise JournalMoved(
            f"{where} has {last} entries, of which {after} were seen; nothing was changed: read the rest"
        )
