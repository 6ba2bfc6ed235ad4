"""PostgreSQL's errors as ones that name the database and the remedy."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from offmap.errors import reason_of
from offmap.store.journal import JournalInUse, JournalUnreadable

_LOCK_NOT_AVAILABLE, _UNIQUE_VIOLATION = "55P03", "23505"


@contextmanager
def translated(where: object) -> Iterator[None]:
    """Turns errors of the database into ones that name it and the remedy."""
    try:
        yield
    except SQLAlchemyError as error:
        code, reason = _told(error)
        if code == _LOCK_NOT_AVAILABLE:
            raise JournalInUse(
                f"{where} is in use by another process; wait until it ends, or pass wait=seconds"
            ) from None
        if code == _UNIQUE_VIOLATION:
            raise JournalUnreadable(f"{where} is damaged: UNIQUE constraint failed: {reason}") from error
        raise OSError(f"cannot use {where}: {reason}; nothing was changed") from error


@contextmanager
def committed(where: object) -> Iterator[None]:
    """Says that the outcome is not known if the connection is lost while a transaction ends."""
    try:
        yield
    except SQLAlchemyError as error:
        raise OSError(
            f"the connection to {where} was lost before it confirmed: {_told(error)[1]}; the act may or may not have "
            "been kept, look at the status"
        ) from error


def _told(error: SQLAlchemyError) -> tuple[str, str]:
    """The code and the message of the server, or of the connection."""
    original = error.orig if isinstance(error, DBAPIError) else None
    fields = original.args[0] if original is not None and original.args else None
    if isinstance(fields, dict):
        return str(fields.get("C", "")), reason_of(ValueError(fields.get("M", "")))
    return "", f"{reason_of(original or error)} (check the address, the name of the database, and the server)"
