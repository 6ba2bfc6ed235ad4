"""One kind of error for files that cannot be decoded, whichever library reads them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from offmap.errors import reason_of

__all__ = ["decoding"]


@contextmanager
def decoding(path: Path, form: str) -> Iterator[None]:
    """Turns errors of decoding libraries inside the block into a ``ValueError`` that names the file.

    Args:
        path: The file.
        form: The expected format, for the message.
    """
    try:
        yield
    except (FileNotFoundError, PermissionError):
        raise
    except MemoryError as error:
        raise ValueError(f"{path} cannot be read as {form}: it needs more memory than there is") from error
    except Exception as error:  # a damaged file raises errors of any kind: KeyError, TokenError, SyntaxError
        raise ValueError(f"{path} cannot be read as {form}: {reason_of(error)}") from error
