"""The folder of a world: its journal and one file per version of the model."""

import hashlib
import os
from pathlib import Path
from typing import Any

from offmap import catalog
from offmap.loop.state import Version
from offmap.openset.incremental import IncrementalClassifier
from offmap.store import SQLiteJournal

JOURNAL = "journal.sqlite"


def make_journal(path: str | os.PathLike[str]) -> SQLiteJournal:
    """Makes the folder and its journal; a folder that has one already is refused."""
    folder = Path(path)
    if (folder / JOURNAL).exists():
        raise FileExistsError(f"{folder} holds a world already; open it with OpenWorld.open")
    folder.mkdir(parents=True, exist_ok=True)
    return SQLiteJournal(folder / JOURNAL, create=True)


def open_journal(path: str | os.PathLike[str], wait: float) -> SQLiteJournal:
    """Opens the journal of a folder."""
    folder = Path(path)
    if not (folder / JOURNAL).is_file():
        raise FileNotFoundError(f"{folder} holds no world; make one with OpenWorld.create")
    return SQLiteJournal(folder / JOURNAL, wait=wait)


def write_model(folder: Path, model: IncrementalClassifier, version: int) -> str:
    """Writes a version of the model and returns the digest of its file.

    It is written before the journal says that it exists: a process that is killed in between leaves a file that the
    next version of that number replaces.
    """
    path = _model_path(folder, version)
    path.parent.mkdir(exist_ok=True)
    model.save(path)
    return _digest(path)


def read_model(folder: Path, version: Version) -> Any:
    """Reads a version of the model, if its file is the one that the journal speaks of."""
    path = _model_path(folder, version.number)
    if not path.is_file():
        raise FileNotFoundError(f"version {version.number} of the model is missing: there is no {path}")
    if _digest(path) != version.digest:
        raise ValueError(f"{path} is not the file that was written as version {version.number}; restore it")
    return catalog.load(path)


def _model_path(folder: Path, version: int) -> Path:
    return folder / "models" / f"{version:04d}.safetensors"


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
