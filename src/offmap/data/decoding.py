"""One clear error for a file that cannot be decoded, whichever library tried."""

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
    """Turns whatever goes wrong while ``path`` is decoded into a ValueError that names the file.

    Args:
        path: The file.
        form: What it is read as.
    """
    try:
        yield
    except (FileNotFoundError, PermissionError):
        raise
    except _FAILURES as error:
        raise ValueError(f"{path} cannot be read as {form}: {error}") from error
