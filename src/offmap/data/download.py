"""Downloads data files. A file gets its final name only after it is complete and its checksum is verified."""

import urllib.request
from http.client import HTTPException
from pathlib import Path

from offmap.data.store import DataNotFound, File, cache_folder, check
from offmap.files import replacing
from offmap.progress import bar

__all__ = ["download"]

_CHUNK = 1 << 20
_TIMEOUT_SECONDS = 30.0


def download(file: File) -> Path:
    """Downloads ``file`` from its official address into the user's cache and returns its path.

    Args:
        file: A file that has an address.

    Raises:
        DataNotFound: The download failed.
        DataCorrupt: The downloaded bytes do not match the checksum.
    """
    target = cache_folder() / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as part:
        try:
            _copy(str(file.url), part, target.stem)
        except (OSError, HTTPException) as error:
            raise DataNotFound(f"{file.url} could not be downloaded to {target}: {error}") from error
        check(part, file.sha256, source=str(file.url))
    return target


def _copy(url: str, target: Path, name: str) -> None:
    with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer, target.open("wb") as sink:
        size = int(answer.headers.get("Content-Length") or 0)
        with bar(f"{name} (MiB)", total=-(-size // _CHUNK)) as shown:
            while chunk := answer.read(_CHUNK):
                sink.write(chunk)
                shown.advance()
