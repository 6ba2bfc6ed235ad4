"""Reads any supported file, folder of images or named data set."""

from collections.abc import Sequence
from pathlib import Path

from offmap.data.arrays import read_npy, read_npz
from offmap.data.images import IMAGE_SUFFIXES, image_paths, read_images
from offmap.data.registry import CATALOGUE, hint, load
from offmap.data.roles import Roles
from offmap.data.rows import Data
from offmap.data.store import DataNotFound
from offmap.data.table_files import STANDARD_INPUT
from offmap.data.tables import TABLE_SUFFIXES, read_table

__all__ = ["open_data", "path_of", "read"]

FILE_SUFFIXES = (".npz", ".npy", *TABLE_SUFFIXES)


def read(
    path: str | Path,
    text: str | None = None,
    label: str | None = None,
    split: str | None = None,
    *,
    roles: Roles | None = None,
    optional: Sequence[str] = (),
) -> Data:
    """Reads rows, and labels if there are any, from a file or a folder of images.

    - ``.npz``: the keys ``X`` or ``x`` with ``y``, or ``x_<split>`` with ``y_<split>``;
    - ``.npy``: rows only;
    - ``.csv``, ``.tsv`` (without quoting), both also as ``.gz``, ``.parquet``, ``.pq`` and ``.jsonl``: a named table;
    - ``-``: a table on standard input, as CSV or JSON lines;
    - a folder: PNG and JPEG images of the same size; sub-folders are labels.

    Args:
        path: The file or folder.
        text: Name of the text column of a table. Without it, all columns except ``label`` are features.
        label: Name of the label column of a table.
        split: The split to read from an ``.npz`` file that has several.
        roles: What the columns of a table are for, in place of ``text`` and ``label``.
        optional: Roles whose columns a table may lack, such as "label".

    Raises:
        FileNotFoundError: There is no such file or folder.
        ValueError: It cannot be read; the message says why.
    """
    roles = _roles(roles, text, label)
    if str(path) == STANDARD_INPUT:
        _refuse("standard input", "an .npz file", split=split)
        return read_table(Path(path), roles, optional)
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {path}")
    name = path.name.lower()
    if not path.is_dir() and not name.endswith(FILE_SUFFIXES):
        raise ValueError(
            f"{path} must be one of {', '.join(FILE_SUFFIXES)}, or a folder of images ({', '.join(IMAGE_SUFFIXES)})"
        )
    if name.endswith(TABLE_SUFFIXES):
        _refuse(path, "an .npz file", split=split)
        return read_table(path, roles, optional)
    if path.is_dir():
        image_paths(path)  # a folder of tables is to be called one, whatever its columns are said to be
    _refuse_roles(path, roles, optional)
    if name.endswith(".npz"):
        return read_npz(path, split)
    _refuse(path, "an .npz file", split=split)
    return read_images(path) if path.is_dir() else read_npy(path)


def open_data(
    spec: str,
    text: str | None = None,
    label: str | None = None,
    split: str | None = None,
    *,
    roles: Roles | None = None,
    optional: Sequence[str] = (),
) -> Data:
    """Reads a file, a folder or a named data set. A path has priority over a data set of the same name.

    Args:
        spec: Path or name, with an optional ``:split``: ``"rows.csv"``, ``"images/"``, ``"rows.npz:test"``,
            ``"digits"`` or ``"fashion-mnist:test"``; ``"-"`` is a table on standard input.
        text: Name of the text column of a table.
        label: Name of the label column of a table.
        split: The split, if ``spec`` does not name it.
        roles: What the columns of a table are for, in place of ``text`` and ``label``.
        optional: Roles whose columns a table may lack; data of other kinds are read without them.

    Raises:
        DataNotFound: ``spec`` is neither a path nor a data set.

    Example:
        >>> open_data("iris").X.shape
        (150, 4)
    """
    name, split = _separate(spec, split)
    if name == STANDARD_INPUT or _on_disk(name):
        return read(name, text, label, split, roles=roles, optional=optional)
    if name.lower() in CATALOGUE:
        _refuse_roles(name, _roles(roles, text, label), optional)
        return load(name, split)
    raise DataNotFound(f"{name!r} is neither a file or folder nor a data set; {hint(name)}")


def is_table(spec: str) -> bool:
    """Whether ``spec`` is a file of a table, or standard input.

    Example:
        >>> is_table("-"), is_table("digits")
        (True, False)
    """
    path = path_of(spec)
    return spec == STANDARD_INPUT or (path is not None and path.name.lower().endswith(TABLE_SUFFIXES))


def path_of(spec: str) -> Path | None:
    """Returns the path in ``spec`` without the split, or None if ``spec`` is not a path that exists."""
    name, _ = _separate(spec, None)
    return Path(name) if _on_disk(name) else None


def _separate(spec: str, split: str | None) -> tuple[str, str | None]:
    name, colon, named_split = spec.rpartition(":")
    is_whole = not colon or _on_disk(spec) or not (_on_disk(name) or name.lower() in CATALOGUE)
    if is_whole:
        return spec, split
    if split not in (None, named_split):
        raise ValueError(f"split must be given once; got split={split!r} and {spec!r}")
    return name, named_split


def _on_disk(name: str) -> bool:
    # Path("") is the current folder, which is never what was meant.
    return bool(name) and Path(name).exists()


def _refuse(where: str | Path, wanted: str, **options: str | None) -> None:
    for option, value in options.items():
        if value is not None:
            raise ValueError(f"{option} must be left out: it is an option of {wanted}, which {where} is not")


def _roles(roles: Roles | None, text: str | None, label: str | None) -> Roles:
    if roles is not None and (text is not None or label is not None):
        raise ValueError("give either roles, or text and label")
    return Roles(text=text, label=label) if roles is None else roles


def _refuse_roles(where: str | Path, roles: Roles, optional: Sequence[str]) -> None:
    stated = {name: value or None for name, value in roles.to_dict().items() if name not in optional}
    _refuse(where, "a table", **stated)
