"""Writing the results of commands: checked before the work, whole or not there after it. Nothing heavy is imported."""

import json
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from offmap.files import replacing
from offmap.json_values import json_value

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SCORE_SUFFIXES", "json_lines", "require_scores_out", "require_writable", "write_frame"]

SCORE_SUFFIXES = (".parquet", ".csv", ".jsonl")


def write_frame(frame: "pd.DataFrame", path: Path) -> None:
    """Writes a table as .parquet, .csv or .jsonl, by the name of the file."""
    require_writable(path, SCORE_SUFFIXES)
    with replacing(path) as fresh:
        if path.suffix == ".csv":
            from offmap.cells import inert

            inert(frame).to_csv(fresh, index=False)
        elif path.suffix == ".parquet":
            frame.to_parquet(fresh, index=False)
        else:
            with fresh.open("w", encoding="utf-8") as stream:
                stream.writelines(json_lines(frame))


def json_lines(frame: "pd.DataFrame") -> Iterator[str]:
    """Each row as a line of JSON; numbers that are not finite, for which JSON has no word, become null.

    Example:
        >>> import pandas as pd
        >>> list(json_lines(pd.DataFrame({"row": [0], "novelty": [float("inf")]})))
        ['{"row": 0, "novelty": null}\\n']
    """
    names = list(frame.columns)
    for row in frame.itertuples(index=False, name=None):
        record = {name: json_value(value) for name, value in zip(names, row, strict=True)}
        yield json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"


def require_writable(path: Path, suffixes: Collection[str] = (), inputs: Sequence[str] = ()) -> None:
    """Checks before the work that its result can be written.

    Args:
        path: Where a file is to be written.
        suffixes: What its name may end in; anything, if there are none.
        inputs: What the work reads, as ``open_data`` takes it; its result must not replace that.
    """
    for given in inputs:
        for read in (given, given.rpartition(":")[0]):
            if read and _is_read(path, Path(read)):
                raise ValueError(f"cannot write {path}: it is read as well; name another file")
    if suffixes and path.suffix not in suffixes:
        raise ValueError(f"a file to write must end in {' or '.join(suffixes)}; got {path}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} does not exist")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"cannot write {path}: the folder {path.parent} is not yours to write to")


def require_scores_out(path: Path, inputs: Sequence[str] = ()) -> None:
    """Checks before the work that scores can be written to a file, or to a folder, whose name has no suffix."""
    if path.is_dir():
        require_writable(path / "part-00000.parquet", (), inputs)
    else:
        require_writable(path, SCORE_SUFFIXES if path.suffix else (), inputs)


def _is_read(path: Path, given: Path) -> bool:
    """Whether ``path`` is the input ``given``, or a picture or an existing file in the folder ``given``."""
    if given.is_dir():
        from offmap.data.images import IMAGE_SUFFIXES

        inside = path.resolve().is_relative_to(given.resolve())
        return inside and (path.exists() or path.suffix.lower() in IMAGE_SUFFIXES)
    return given.exists() and path.exists() and path.samefile(given)
