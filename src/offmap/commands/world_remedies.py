"""The library's error messages on the shell: a remedy that is a call in Python becomes a command or an option."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_MORE_ROWS = "teach it more rows with 'offmap world teach', or give it rows to assess with 'offmap world observe'"
_TAKE_BACK = "with 'offmap world undo' or 'offmap world rollback' first"

# What the library says, and what the shell says instead.
REMEDIES = {
    "groups() lists them": "'offmap world groups' lists them",
    "open it with OpenWorld.open": _MORE_ROWS,
    "open it, or choose another name": _MORE_ROWS,
    "make one with OpenWorld.create": "make one with 'offmap world create'",
    "teach some first": "teach some with 'offmap world teach'",
    "pass wait=seconds": "pass --wait SECONDS",
    "undo or rollback it first": f"take it back {_TAKE_BACK}",
    "undo or rollback that version first": f"take that version back {_TAKE_BACK}",
    "give a column of texts alone": "name a column of texts with --text",
    "give each row an id of its own": (
        "give each row its own: --ids names the column of ids, and the id of an image is its path in the folder"
    ),
}


def in_shell_words(message: str) -> str:
    """The message with the remedies of the shell.

    Example:
        >>> in_shell_words("there is no group 7; groups() lists them")
        "there is no group 7; 'offmap world groups' lists them"
    """
    for remedy, command in REMEDIES.items():
        message = message.replace(remedy, command)
    return message


def reworded(error: BaseException, words: Callable[[str], str]) -> None:
    """Changes what an error says, if it says one thing."""
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (words(error.args[0]),)


@contextmanager
def shell_remedies() -> Iterator[None]:
    """Gives an error that the block raises the remedies of the shell."""
    try:
        yield
    except Exception as error:
        reworded(error, in_shell_words)
        raise


@contextmanager
def rows_called(name: str) -> Iterator[None]:
    """Calls the rows ``name`` in an error that the block raises, where the library calls them ``X``."""
    try:
        yield
    except Exception as error:
        reworded(error, lambda message: re.sub("^X ", lambda _: f"{name} ", message))
        raise
