"""From the URL of a PostgreSQL database to an engine that pg8000 serves."""

import getpass
import os
import ssl
from typing import Any

from sqlalchemy import URL, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError

_PORT = 5432
# Without a certificate of the server, "prefer" and "allow" of libpq protect from nobody: they mean no encryption here.
_ENCRYPTED = {"disable": False, "allow": False, "prefer": False, "require": True, "verify-full": True}


def engine_of(url: str) -> Engine:
    """An engine for a URL as ``psql`` takes it; a folder as ``host`` is that of a Unix socket.

    The user is, in this order, that of the URL, ``PGUSER`` or the one who is logged in; a password can be in
    ``PGPASSWORD``.

    Args:
        url: ``postgresql://user:password@host:port/database``, with ``host``, ``port``, ``user`` and ``sslmode``
            ("require" checks the server's certificate too) as parameters if need be.

    Example:
        >>> engine_of("postgresql://eve:secret@db.example/worlds").url
        postgresql+pg8000://eve:***@db.example:5432/worlds
    """
    given = _parsed(url)
    query: dict[str, Any] = dict(given.query)
    host = query.pop("host", given.host) or os.environ.get("PGHOST", "localhost")
    port = int(query.pop("port", given.port or os.environ.get("PGPORT", _PORT)))
    user = query.pop("user", given.username) or os.environ.get("PGUSER") or getpass.getuser()
    mode = query.pop("sslmode", "prefer")
    if query or mode not in _ENCRYPTED:
        unknown = ", ".join(query) or f"sslmode={mode}"
        raise ValueError(
            f"the store's URL has {unknown}; known are host, port, user and sslmode={'|'.join(_ENCRYPTED)}"
        )
    arguments: dict[str, Any] = {"ssl_context": ssl.create_default_context()} if _ENCRYPTED[mode] else {}
    if host.startswith("/"):
        arguments["unix_sock"] = f"{host}/.s.PGSQL.{port}"
    database = given.database or user
    password = given.password or os.environ.get("PGPASSWORD")
    address = URL.create("postgresql+pg8000", user, password, _as_name(host), port, database)
    # A connection that the server closed meanwhile is noticed and replaced before it is used.
    return create_engine(address, connect_args=arguments, pool_size=1, pool_pre_ping=True)


def _parsed(url: str) -> URL:
    try:
        given = make_url(url)
    except (ArgumentError, ValueError):
        raise ValueError("the store's URL cannot be read; write postgresql://user@host/database") from None
    if given.drivername not in ("postgresql", "postgres", "postgresql+pg8000"):
        raise ValueError(f"the store's URL starts with {given.drivername}://; only postgresql:// is supported")
    return given


def _as_name(host: str) -> str | None:
    """The host of a network address; a socket has none."""
    return None if host.startswith("/") else host
