"""A journal in a PostgreSQL database, which several processes share."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, final

from sqlalchemy import Connection, bindparam, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from offmap.store.journal import Entry, JournalUnreadable, encoded, require_seen
from offmap.store.postgres_errors import committed, translated
from offmap.store.postgres_tables import SCHEMA, entries, exist, make_tables, rows, worlds
from offmap.store.postgres_url import engine_of

# Whole batches as arrays: one statement per row would take a hundred times as long.
_ADD_ROWS = text(
    "INSERT INTO offmap_rows (world, number, payload) "
    "SELECT :world, * FROM unnest(CAST(:numbers AS integer[]), CAST(:payloads AS bytea[]))"
)
_FIND_ROWS = text(
    "SELECT number, payload FROM offmap_rows WHERE world = :world AND number = ANY(CAST(:numbers AS integer[]))"
)
_PER_STATEMENT = 2000
_LONGEST_NAME = 200


@final
class PostgresJournal:
    """Keeps entries and rows of one world in a PostgreSQL database; several processes can have it open.

    A process takes its turn by locking the row of the world in one transaction, which ends with what it appends. A
    process that is killed, or loses its connection, appends nothing and leaves no lock behind.

    Args:
        url: The database, as ``postgresql://user:password@host/database``.
        name: The name of the world; a database holds many.
        create: Whether to make it; it must have no entries then, and must exist otherwise.
        wait: Seconds to wait for a turn while others have theirs.
    """

    def __init__(self, url: str, name: str, *, create: bool = False, wait: float = 60.0) -> None:
        if not name.strip() or len(name) > _LONGEST_NAME or "\0" in name:
            raise ValueError(f"a world in a database needs a name of 1 to {_LONGEST_NAME} characters; got {name!r}")
        self._engine, self._name, self._wait = engine_of(url), name, wait
        self._turn: Connection | None = None
        try:
            with translated(self), self._engine.begin() as connection:
                self.world = self._found(connection, create)
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        return f"{self._name} in {self._engine.url.render_as_string(hide_password=True)}"

    def _found(self, connection: Connection, create: bool) -> int:
        if create:
            make_tables(connection)
            new = insert(worlds).values(name=self._name, schema=SCHEMA, last=0)
            connection.execute(new.on_conflict_do_nothing())
        named = select(worlds.c.id, worlds.c.schema, worlds.c.last).where(worlds.c.name == self._name)
        row = connection.execute(named).one_or_none() if create or exist(connection) else None
        if row is None:
            raise FileNotFoundError(f"there is no world {self}; make one with OpenWorld.create")
        if row.schema > SCHEMA:
            raise JournalUnreadable(
                f"{self} was written by a newer release (schema {row.schema}, this one reads up to {SCHEMA}); "
                "update offmap"
            )
        if create and row.last:
            raise FileExistsError(f"{self} exists already; open it, or choose another name")
        return int(row.id)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Keeps other processes from appending while the block runs; waits for those that have their turn."""
        with translated(self), self._engine.connect() as connection:
            self._locked(connection)
            self._turn = connection
            try:
                yield
            finally:
                self._turn = None

    def _locked(self, connection: Connection) -> int:
        """Locks the row of the world, and returns the number of the last entry."""
        limit = text("SELECT set_config('lock_timeout', :limit, true)")
        connection.execute(limit, {"limit": f"{max(round(self._wait * 1000), 1)}ms"})
        chosen = select(worlds.c.last).where(worlds.c.id == self.world).with_for_update()
        return int(connection.execute(chosen).scalar_one())

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """The connection of the turn, or one for this block alone; what the block writes is then kept at its end."""
        with translated(self):
            if self._turn is not None:
                yield self._turn
            else:
                with self._engine.connect() as connection:
                    yield connection
                    connection.commit()

    def append(
        self, kind: str, content: Mapping[str, Any], rows: Mapping[int, bytes] | None = None, *, after: int
    ) -> Entry:
        """Writes one entry, and the rows that came with it, all or nothing; they are on disk when it returns."""
        made = {"world": self.world, "number": after + 1, "kind": kind, "content": encoded(content)}
        made["at"] = datetime.now(UTC).isoformat(timespec="seconds")
        with self.connected() as connection:
            try:
                require_seen(self, self._locked(connection), after)
                self._add_rows(connection, rows or {})
                connection.execute(insert(entries), made)
                connection.execute(update(worlds).where(worlds.c.id == self.world).values(last=after + 1))
            except BaseException:
                connection.rollback()
                raise
            with committed(self):
                connection.commit()
        return Entry(after + 1, kind, json.loads(str(made["content"])), str(made["at"]))

    def _add_rows(self, connection: Connection, new: Mapping[int, bytes]) -> None:
        numbers = list(new)
        for start in range(0, len(numbers), _PER_STATEMENT):
            some = numbers[start : start + _PER_STATEMENT]
            values = {"world": self.world, "numbers": some, "payloads": [new[number] for number in some]}
            connection.execute(_ADD_ROWS, values)

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """The entries with a number above ``after``, in order."""
        columns = (entries.c.number, entries.c.kind, entries.c.content, entries.c.at)
        later = select(*columns).where(entries.c.world == self.world, entries.c.number > bindparam("after"))
        with self.connected() as connection:
            found = connection.execute(later.order_by(entries.c.number), {"after": after}).all()
        for number, kind, content, at in found:
            yield Entry(number, kind, json.loads(content), at)

    def rows(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """The rows with these numbers."""
        wanted, found = list(numbers), dict[int, bytes]()
        with self.connected() as connection:
            for start in range(0, len(wanted), _PER_STATEMENT):
                some = wanted[start : start + _PER_STATEMENT]
                rows = connection.execute(_FIND_ROWS, {"world": self.world, "numbers": some})
                found.update((number, bytes(payload)) for number, payload in rows)
        return found

    def next_row(self) -> int:
        """The smallest number that is above those of all rows."""
        with self.connected() as connection:
            last = select(func.coalesce(func.max(rows.c.number), 0)).where(rows.c.world == self.world)
            return int(connection.execute(last).scalar_one()) + 1

    def close(self) -> None:
        """Closes the connections; closing twice does nothing."""
        self._engine.dispose()
