"""Files of a world in its PostgreSQL database, for processes that share no folder."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

from sqlalchemy import ColumnElement, and_, delete, insert, select

from offmap.store.postgres import PostgresJournal
from offmap.store.postgres_tables import files

_PIECE = 1 << 24


@final
class PostgresFiles:
    """Keeps files in the database of a journal. What is written in a turn is kept with the entry that ends it.

    Args:
        journal: The journal of the same world.
    """

    def __init__(self, journal: PostgresJournal) -> None:
        self._journal = journal

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """A path in a temporary folder, whose content goes to the database when the block ends."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            yield path
            self._write(name, path.read_bytes())

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        """A copy of the file in a temporary folder."""
        chosen = select(files.c.payload).where(self._is(name)).order_by(files.c.piece)
        with self._journal.connected() as connection:
            pieces = [bytes(piece) for piece in connection.execute(chosen).scalars()]
        if not pieces:
            raise FileNotFoundError(f"there is no file {name} of {self._journal}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(b"".join(pieces))
            yield path

    def discard(self, name: str) -> None:
        """Does nothing: the transaction of a turn that appended nothing is rolled back, with what it wrote."""

    def _write(self, name: str, content: bytes) -> None:
        with self._journal.connected() as connection:
            connection.execute(delete(files).where(self._is(name)))
            for piece, start in enumerate(range(0, max(len(content), 1), _PIECE)):
                values = {"world": self._journal.world, "name": name, "piece": piece}
                connection.execute(insert(files), values | {"payload": content[start : start + _PIECE]})

    def _is(self, name: str) -> ColumnElement[bool]:
        return and_(files.c.world == self._journal.world, files.c.name == name)
