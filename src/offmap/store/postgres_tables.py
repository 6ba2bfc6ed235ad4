"""The tables of worlds in PostgreSQL; many worlds share one database."""

from sqlalchemy import (
    Column,
    Connection,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    inspect,
    text,
)

SCHEMA = 1
# Any number that other programs on the same database are unlikely to lock.
_LOCK = 0x0FF3A9

metadata = MetaData()


def _world() -> Column[int]:
    return Column("world", Integer, ForeignKey("offmap_worlds.id"), primary_key=True)


# ``last`` is the number of the last entry. Its row is what processes lock when they take turns.
worlds = Table(
    "offmap_worlds",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("schema", Integer, nullable=False),
    Column("last", Integer, nullable=False),
)
# JSON as text: the type jsonb would change the order of keys and the form of numbers.
entries = Table(
    "offmap_entries",
    metadata,
    _world(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("content", Text, nullable=False),
)
rows = Table(
    "offmap_rows",
    metadata,
    _world(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("payload", LargeBinary, nullable=False),
)
# A file is cut into pieces: a value has 1 GB at most, and is held in memory several times on its way.
files = Table(
    "offmap_files",
    metadata,
    _world(),
    Column("name", Text, primary_key=True),
    Column("piece", Integer, primary_key=True, autoincrement=False),
    Column("payload", LargeBinary, nullable=False),
)

_GUARD = (
    "CREATE FUNCTION offmap_entries_stay() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'entries are never changed or deleted'; END $$",
    "CREATE TRIGGER offmap_entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON offmap_entries "
    "FOR EACH STATEMENT EXECUTE FUNCTION offmap_entries_stay()",
)


def make_tables(connection: Connection) -> None:
    """Makes the tables, unless they exist; two processes that do so at once take turns."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    if not exist(connection):
        metadata.create_all(connection)
        for statement in _GUARD:
            connection.execute(text(statement))


def exist(connection: Connection) -> bool:
    """Whether the database has the tables."""
    return inspect(connection).has_table(worlds.name)
