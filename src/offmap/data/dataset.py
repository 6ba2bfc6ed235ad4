"""What is known of a named data set: what it is, whence it comes, under which licence, in which files."""

from dataclasses import dataclass, field
from typing import Literal

from offmap.data.sources import Source
from offmap.data.store import File

__all__ = ["DataSet", "Split", "Table"]


@dataclass(frozen=True)
class Split:
    """One part of a data set, in one or more stored forms that hold the same rows."""

    name: str
    rows: int
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Table:
    """One table of a data set, with the columns that are strings whatever they look like."""

    name: str
    rows: int
    file: File
    strings: tuple[str, ...] = ()


@dataclass(frozen=True)
class DataSet:
    """One named data set: either splits of rows and labels, or tables.

    Args:
        name: The name it is loaded by.
        kind: What a row is.
        about: What the set holds.
        licence: The licence as its makers state it.
        origin: Where its makers publish it.
        splits: Its splits.
        tables: Its tables.
        class_names: The name of each integer label.
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
        """For each split or table, the sets of files of which one must be found."""
        splits = tuple(tuple(source.files for source in split.sources) for split in self.splits)
        return splits + tuple(((table.file,),) for table in self.tables)
