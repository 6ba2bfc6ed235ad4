"""The files that hold a table: one file, a folder of files, or a folder whose sub-folders name values of columns."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Self
from urllib.parse import unquote

import pyarrow as pa

from offmap.data.table_files import PARQUET_SUFFIXES, SEPARATED_SUFFIXES

STREAM_SUFFIXES = (*PARQUET_SUFFIXES, *SEPARATED_SUFFIXES)
# What Hive writes for a missing value.
_MISSING = "__HIVE_DEFAULT_PARTITION__"


class Stamp(NamedTuple):
    """Size and time of change of a file: what tells that it is still the same."""

    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> Self:
        """Looks at a file."""
        found = path.stat()
        return cls(found.st_size, found.st_mtime_ns)


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """One file of a table.

    Args:
        path: Where it is.
        stamp: Size and time of change as the file was found.
        values: Value of each column that the names of its folders state, as ``year=2025/``.
    """

    path: Path
    stamp: Stamp
    values: dict[str, pa.Scalar] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Source:
    """The files of a table in the order of their rows, all of one format."""

    name: str
    files: tuple[SourceFile, ...]
    form: Literal["parquet", "separated"]


def open_source(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Source:
    """Finds the files of a table.

    Files of a folder are taken in the order of their paths, sub-folders included; names that begin with a dot or an
    underscore are no data. A folder called ``year=2025`` gives its files a column ``year``.

    Args:
        source: A Parquet, CSV or TSV file, a folder of such files, or a list of files.

    Raises:
        FileNotFoundError: There is no such file or folder, or the folder holds no table.
        ValueError: The files are of several formats, or of none that can be read in batches.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     (Path(folder) / "year=2025").mkdir()
        ...     _ = (Path(folder) / "year=2025" / "a.csv").write_text("paid\\n3.5\\n")
        ...     open_source(folder).files[0].values
        {'year': <pyarrow.Int64Scalar: 2025>}
    """
    if isinstance(source, str | os.PathLike):
        root = Path(source)
        if not root.exists():
            raise FileNotFoundError(f"there is no file or folder {root}")
        paths, name = (table_files(root), str(root)) if root.is_dir() else ([root], str(root))
    else:
        paths = [Path(path) for path in source]
        name, root = f"{len(paths)} files", Path()
    if not paths:
        raise FileNotFoundError(f"{name} holds no file that ends in {', '.join(STREAM_SUFFIXES)}")
    found = [_stated(path.relative_to(root)) if root.is_dir() and path.is_relative_to(root) else {} for path in paths]
    form, stated = _form(paths), _partitions(found, paths)
    files = [SourceFile(path=path, stamp=Stamp.of(path), values=own) for path, own in zip(paths, stated, strict=True)]
    return Source(name=name, files=tuple(files), form=form)


def is_stream(spec: str) -> bool:
    """Whether ``spec`` is a file or folder that can be read in batches.

    Example:
        >>> is_stream("-"), is_stream("digits")
        (False, False)
    """
    path = Path(spec)
    if path.is_dir():
        return next(_walk(path), None) is not None
    return path.is_file() and path.name.lower().endswith(STREAM_SUFFIXES)


def table_files(folder: Path) -> list[Path]:
    """The tables in a folder and its sub-folders, in the order of their paths."""
    return sorted(_walk(folder))


def _walk(folder: Path) -> Iterator[Path]:
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        shown = [name for name in names if not name.startswith((".", "_"))]
        yield from (Path(where) / name for name in shown if name.lower().endswith(STREAM_SUFFIXES))


def _form(paths: Sequence[Path]) -> Literal["parquet", "separated"]:
    odd = [path for path in paths if not path.name.lower().endswith(STREAM_SUFFIXES)]
    if odd:
        raise ValueError(f"{odd[0]} cannot be read in batches; its name must end in {', '.join(STREAM_SUFFIXES)}")
    first, *others = [path.name.lower().endswith(PARQUET_SUFFIXES) for path in paths]
    for path, parquet in zip(paths[1:], others, strict=True):
        if parquet is not first:
            raise ValueError(f"{paths[0]} and {path} are of two formats; give files of one format")
    return "parquet" if first else "separated"


def _stated(path: Path) -> dict[str, str]:
    """What the names of the folders say, as texts."""
    pairs = [part.partition("=") for part in path.parent.parts if "=" in part]
    return {unquote(name): unquote(value) for name, _, value in pairs}


def _partitions(found: list[dict[str, str]], paths: Sequence[Path]) -> list[dict[str, pa.Scalar]]:
    """Values of the columns that folders state: integers if all are, else texts."""
    names = list(found[0])
    for path, own in zip(paths, found, strict=True):
        if list(own) != names:
            raise ValueError(f"{path} must lie in folders named {'=…/'.join(names)}=…, as {paths[0]} does")
    whole = {name for name in names if all(_is_whole(own[name]) for own in found)}
    return [{name: _value(own[name], name in whole) for name in names} for own in found]


def _is_whole(value: str) -> bool:
    digits = value.removeprefix("-")
    plain = digits.isascii() and digits.isdecimal() and (digits == "0" or not digits.startswith("0"))
    return value == _MISSING or (plain and len(digits) <= 18)


def _value(text: str, whole: bool) -> pa.Scalar:
    value = None if text == _MISSING else int(text) if whole else text
    return pa.scalar(value, pa.int64() if whole else pa.string())
