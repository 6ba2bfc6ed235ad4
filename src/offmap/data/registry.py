"""Loads data sets by name from ``$OFFMAP_DATA``, the user's cache or their official address, in this order."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pandas as pd

from offmap.data.dataset import DataSet, Split, Table
from offmap.data.download import download
from offmap.data.image_sets import IMAGE_SETS
from offmap.data.rows import Data
from offmap.data.sources import Source
from offmap.data.store import DataNotFound, File, Stamp, check, find, folders
from offmap.data.tables import read_frame
from offmap.data.tabular_sets import TABULAR_SETS
from offmap.data.text_sets import TEXT_SETS

__all__ = ["CATALOGUE", "Listing", "describe", "hint", "load", "load_table", "names"]

CATALOGUE: dict[str, DataSet] = {each.name: each for each in (*IMAGE_SETS, *TEXT_SETS, *TABULAR_SETS)}


@dataclass(frozen=True)
class Listing:
    """One entry of the list of data sets.

    Args:
        name: Name to load it by.
        kind: Kind of its rows: ``"images"``, ``"text"``, ``"features"`` or ``"tables"``.
        rows: Number of rows of each split or table.
        about: Short description of the contents.
        licence: The licence as its authors state it.
        found: Whether all of its files are on this machine.
        where: The folder that holds it, or how to get it.
    """

    name: str
    kind: str
    rows: dict[str, int]
    about: str
    licence: str
    found: bool
    where: str


def names() -> tuple[str, ...]:
    """Returns the names of all data sets.

    Example:
        >>> "fashion-mnist" in names()
        True
    """
    return tuple(CATALOGUE)


def describe() -> list[Listing]:
    """Returns an entry for each data set: its contents, and where it was found or how to get it.

    Example:
        >>> digits = describe()[0]
        >>> digits.name, digits.rows, digits.where
        ('digits', {'all': 1797}, 'bundled with scikit-learn')
    """
    return [_listing(data_set) for data_set in CATALOGUE.values()]


def hint(name: str) -> str:
    """Returns a suggestion for an unknown name: the most similar data set, or how to list all.

    Example:
        >>> hint("fashon-mnist")
        "did you mean 'fashion-mnist'?"
    """
    near = difflib.get_close_matches(name.lower(), CATALOGUE, n=1)
    return f"did you mean {near[0]!r}?" if near else "`offmap datasets` lists the data sets"


def load(name: str, split: str | None = None) -> Data:
    """Loads one split of a named data set. The arrays are shared between calls and read-only.

    Args:
        name: Name of the data set; ``names()`` lists them.
        split: Name of the split. By default ``"train"``, or the first split if there is no ``"train"``.

    Raises:
        DataNotFound: The data set is not on this machine and cannot be downloaded.
        DataCorrupt: A file does not have the expected checksum.

    Example:
        >>> digits = load("digits")
        >>> digits.X.shape, digits.kind
        ((1797, 8, 8), 'images')
    """
    data_set = _named(name)
    if data_set.tables:
        raise ValueError(f"{name!r} holds tables: use load_table({name!r}, table) with one of {_listed(data_set.rows)}")
    chosen = _choose_split(data_set, split)
    number, stamps = _obtain(data_set, [source.files for source in chosen.sources])
    data = _decode(chosen.sources[number], stamps)
    return replace(data, name=data_set.name, class_names=data.class_names or data_set.class_names)


def load_table(name: str, table: str | None = None) -> pd.DataFrame:
    """Loads one table of a named data set, such as ``load_table("ml1m", "ratings")``.

    Args:
        name: A data set of the kind ``"tables"``.
        table: Name of the table. It may be left out if there is only one.

    Raises:
        DataNotFound: The data set is not on this machine and cannot be downloaded.
        DataCorrupt: A file does not have the expected checksum.
    """
    data_set = _named(name)
    chosen = [each for each in data_set.tables if table in (None, each.name)]
    if len(chosen) != 1:
        if not data_set.tables:
            raise ValueError(f"{name!r} holds no tables: use load({name!r})")
        raise ValueError(f"table of {name!r} must be one of {_listed(data_set.rows)}, not {table!r}")
    _, stamps = _obtain(data_set, [(chosen[0].file,)])
    return _decode_table(chosen[0], stamps[0]).copy()


def _named(name: str) -> DataSet:
    if name.lower() in CATALOGUE:
        return CATALOGUE[name.lower()]
    raise ValueError(f"name must be the name of a data set, not {name!r}; {hint(name)}")


def _choose_split(data_set: DataSet, split: str | None) -> Split:
    by_name = {each.name: each for each in data_set.splits}
    if split is None:
        return by_name.get("train", data_set.splits[0])
    if split not in by_name:
        raise ValueError(f"split of {data_set.name!r} must be one of {_listed(by_name)}, not {split!r}")
    return by_name[split]


def _obtain(data_set: DataSet, alternatives: Sequence[tuple[File, ...]]) -> tuple[int, tuple[Stamp, ...]]:
    """Finds or downloads the files of one alternative; returns its position and the checked files."""
    for number, files in enumerate(alternatives):
        places = [place for file in files if (place := find(file))]
        if len(places) == len(files):
            return number, tuple(check(place, file.sha256) for place, file in zip(places, files, strict=True))
    looked = f"{data_set.name!r}: no {_file_names(alternatives[0])} in {' or '.join(map(str, folders()))}"
    for number, files in enumerate(alternatives):
        if all(file.url for file in files):
            return number, _fetch(files, looked)
    raise DataNotFound(
        f"{looked}, and it cannot be downloaded in this form. It is derived from {data_set.origin}: put the file into "
        "the folder that OFFMAP_DATA names, or read your own copy with offmap.data.read(path)"
    )


def _fetch(files: Sequence[File], looked: str) -> tuple[Stamp, ...]:
    try:
        return tuple(check(find(file) or download(file), file.sha256) for file in files)
    except DataNotFound as error:
        raise DataNotFound(f"{looked}, and {error}") from error


@lru_cache(maxsize=8)
def _decode(source: Source, stamps: tuple[Stamp, ...]) -> Data:
    data = source.read([stamp.path for stamp in stamps])
    for array in (data.X, data.y):
        if array is not None:
            array.flags.writeable = False
    return data


@lru_cache(maxsize=4)
def _decode_table(table: Table, stamp: Stamp) -> pd.DataFrame:
    return read_frame(stamp.path, strings=table.strings)


def _listing(data_set: DataSet) -> Listing:
    held = [any(all(map(find, files)) for files in alternatives) for alternatives in data_set.alternatives]
    found, where = all(held), _where(data_set, all(held))
    return Listing(data_set.name, data_set.kind, data_set.rows, data_set.about, data_set.licence, found, where)


def _where(data_set: DataSet, found: bool) -> str:
    files = [file for alternatives in data_set.alternatives for alternative in alternatives for file in alternative]
    if not files:
        return data_set.origin
    if found:
        file, place = next((file, place) for file in files if (place := find(file)))
        return str(place).removesuffix(file.path).rstrip("/\\")
    if any(file.url for file in files):
        return f"downloads on first use from {data_set.origin}"
    return f"not found; derived from {data_set.origin}"


def _file_names(files: Sequence[File]) -> str:
    return " and ".join(file.path for file in files)


def _listed(items: Iterable[str]) -> str:
    return ", ".join(repr(item) for item in items)
