"""Named data sets: looked up in ``OFFMAP_DATA``, then in the user's cache, then fetched from their official address."""

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
    """One line of the list of data sets.

    Args:
        name: The name it is loaded by.
        kind: What a row is.
        rows: The number of rows of each split or table.
        about: What the set holds.
        licence: The licence as its makers state it.
        found: Whether all of it is on this machine.
        where: The folder it was found in, or how to get it.
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
    """Lists all data sets: what they are, and where each was found or how to get it.

    Example:
        >>> digits = describe()[0]
        >>> digits.name, digits.rows, digits.where
        ('digits', {'all': 1797}, 'bundled with scikit-learn')
    """
    return [_listing(data_set) for data_set in CATALOGUE.values()]


def hint(name: str) -> str:
    """Returns which data sets a misspelt name may have meant.

    Example:
        >>> hint("fashon-mnist")
        "did you mean 'fashion-mnist'?"
    """
    near = difflib.get_close_matches(name.lower(), CATALOGUE, n=1)
    return f"did you mean {near[0]!r}?" if near else "`offmap datasets` lists the data sets"


def load(name: str, split: str | None = None) -> Data:
    """Loads one split of a named data set. The arrays are shared between calls and read-only.

    Args:
        name: One of :func:`names`.
        split: The split; without it ``"train"``, or the first of a set that has no such split.

    Raises:
        DataNotFound: The set is neither on this machine nor to be had from an official address.
        DataCorrupt: A file of it has another checksum than it should.

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
        table: The table; it may be left out where there is one only.

    Raises:
        DataNotFound: The set is neither on this machine nor to be had from an official address.
        DataCorrupt: A file of it has another checksum than it should.
    """
    data_set = _named(name)
    chosen = [each for each in data_set.tables if table in (None, each.name)]
    if len(chosen) != 1:
        held = f"one of {_listed(data_set.rows)}" if data_set.tables else f"left to load({name!r}): it holds no tables"
        raise ValueError(f"table of {name!r} must be {held}, not {table!r}")
    _, stamps = _obtain(data_set, [(chosen[0].file,)])
    return _decode_table(chosen[0], stamps[0]).copy()


def _named(name: str) -> DataSet:
    if name.lower() in CATALOGUE:
        return CATALOGUE[name.lower()]
    raise ValueError(f"name must be a data set, not {name!r}; {hint(name)}")


def _choose_split(data_set: DataSet, split: str | None) -> Split:
    by_name = {each.name: each for each in data_set.splits}
    if split is None:
        return by_name.get("train", data_set.splits[0])
    if split not in by_name:
        raise ValueError(f"split of {data_set.name!r} must be one of {_listed(by_name)}, not {split!r}")
    return by_name[split]


def _obtain(data_set: DataSet, alternatives: Sequence[tuple[File, ...]]) -> tuple[int, tuple[Stamp, ...]]:
    """Returns which of the alternatives there is, and its checked files; fetches one if there is none."""
    for number, files in enumerate(alternatives):
        places = [place for file in files if (place := find(file))]
        if len(places) == len(files):
            return number, tuple(check(place, file.sha256) for place, file in zip(places, files, strict=True))
    looked = f"{data_set.name!r}: no {_file_names(alternatives[0])} in {' or '.join(map(str, folders()))}"
    for number, files in enumerate(alternatives):
        if all(file.url for file in files):
            return number, _fetch(files, looked)
    raise DataNotFound(
        f"{looked}, and no official address has it in this form. It is made from {data_set.origin}: put the file into "
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
    found, where = all(held), _whereabouts(data_set, all(held))
    return Listing(data_set.name, data_set.kind, data_set.rows, data_set.about, data_set.licence, found, where)


def _whereabouts(data_set: DataSet, found: bool) -> str:
    files = [file for alternatives in data_set.alternatives for alternative in alternatives for file in alternative]
    if not files:
        return data_set.origin
    if found:
        file, place = next((file, place) for file in files if (place := find(file)))
        return str(place).removesuffix(file.path).rstrip("/\\")
    if any(file.url for file in files):
        return f"downloads on first use from {data_set.origin}"
    return f"not found; made from {data_set.origin}"


def _file_names(files: Sequence[File]) -> str:
    return " and ".join(file.path for file in files)


def _listed(items: Iterable[str]) -> str:
    return ", ".join(repr(item) for item in items)
