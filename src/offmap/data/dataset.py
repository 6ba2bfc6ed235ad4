"""The description of a named data set: its contents, origin, licence and files."""

from dataclasses import dataclass, field
from typing import Literal

from offmap.data.sources import Source
from offmap.data.store import File

__all__ = ["DataSet", "Split", "Table"]


@dataclass(frozen=True)
class Split:
    """One split of a data set, and the alternative files that hold it."""

    name: str
    rows: int
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Table:
    """One table of a data set. The columns ``strings`` are read as strings, even if they look like numbers."""

    name: str
    rows: int
    file: File
    strings: tuple[str, ...] = ()


@dataclass(frozen=True)
class DataSet:
    """One named data set: either splits of rows and labels, or tables.

    Args:
        name: Name to load it by.
        kind: Kind of its rows.
        about: Short description of the contents.
        licence: The licence as its authors state it.
        origin: Where its authors publish it.
        splits: The splits, if it holds rows and labels.
        tables: The tables, if it holds tables.
        class_names: Name of each integer label.
    """

    name: str
    kind: Literal["images", "text", "features", "tables"]
    about: str
    licence: str
    origin: str
    splits: tuple[Split, ...] = ()
    tables: tuple[Table, ...] = ()
    class_names: tuple[str, ...] = field(default=(), repr=False)

    @property
    def rows(self) -> dict[str, int]:
        """The number of rows of each split or table."""
        return {split.name: split.rows for split in self.splits} | {table.name: table.rows for table in self.tables}

    @property
    def alternatives(self) -> tuple[tuple[tuple[File, ...], ...], ...]:
        """For each split or table, the alternative sets of files; one set must be found."""
        splits = tuple(tuple(source.files for source in split.sources) for split in self.splits)
        return splits + tuple(((table.file,),) for table in self.tables)
