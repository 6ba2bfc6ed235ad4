"""One kind of error for files that cannot be decoded, whichever library reads them."""

import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["decoding"]

_FAILURES = (ValueError, OSError, EOFError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


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
    except _FAILURES as error:
        raise ValueError(f"{path} cannot be read as {form}: {error}") from error
