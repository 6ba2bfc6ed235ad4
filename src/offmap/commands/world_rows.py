"""The rows that a command gives to a world: features with the names of their columns, texts or images, and ids."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from offmap.data import Data
    from offmap.data.roles import Roles


def labelled_rows(spec: str, roles: "Roles") -> tuple["Data", "NDArray[Any]"]:
    """Rows to teach, and their labels."""
    from offmap.data import open_data

    data = open_data(spec, roles=roles)
    if data.y is None:
        raise ValueError(f"{data.name} has no labels; a table needs --label COLUMN")
    return data, data.y


def stream_rows(spec: str, text: str | None, ids: str | None) -> tuple["Data", list[Any] | None]:
    """Rows to assess and their ids: a column of a table, or the files of images; None if the world is to number them.

    Args:
        spec: The data.
        text: The column of texts.
        ids: The column of ids.
    """
    from offmap.data import open_data

    # The reader gives a label the type that an id needs: an integer, or a text where a leading zero makes it a code.
    with _ids_for_labels(ids is not None):
        data = open_data(spec, text=text, label=ids)
    if ids is not None:
        assert data.y is not None
        return data, data.y.tolist()
    if data.kind == "images" and data.identity is not None:
        return data, data.identity["file"].tolist()
    return data, None


def require_classes(data: "Data", labels: "NDArray[Any]") -> None:
    """Refuses rows from which no world can learn, before one is made."""
    import numpy as np

    from offmap.loop.rows import as_given

    as_given(named_rows(data))
    _, counts = np.unique(labels, return_counts=True)
    if len(counts) < 2:
        raise ValueError(f"{data.name} holds one class only; a new world needs rows of two or more")
    if counts.max() < 2:
        raise ValueError(f"{data.name} has a single row per class; some are held out to set the threshold: give more")


def named_rows(data: "Data") -> Any:
    """Features as a data frame, so that columns are matched by name; texts, images and rows without names as they are.

    All numbers are doubles, so that a row stays the same row if another file writes 1 as 1.0.
    """
    if data.frame is None:
        return data.rows
    from pandas.api.types import is_numeric_dtype

    frame = data.frame
    numbers = [name for name in frame.columns if is_numeric_dtype(frame[name].dtype)]
    doubles = {name: frame[name].to_numpy(dtype=float, na_value=float("nan")) for name in numbers}
    return frame.assign(**doubles)


@contextmanager
def _ids_for_labels(wanted: bool) -> Iterator[None]:
    """Errors speak of ``--ids``, since that is what the user gave."""
    try:
        yield
    except ValueError as error:
        if not wanted:
            raise
        raise ValueError(str(error).replace("label must be", "--ids must be")) from error
