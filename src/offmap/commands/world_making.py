"""Makes a world that knows its first classes, or leaves no folder behind."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offmap.commands.world_remedies import reworded, rows_called, shell_remedies
from offmap.commands.world_rows import named_rows, require_classes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from offmap.data import Data
    from offmap.loop import OpenWorld


def taught_world(path: Path, store: str | None, data: "Data", labels: "NDArray[Any]", **settings: Any) -> "OpenWorld":
    """Makes a world and teaches it the known classes.

    If that fails, the folder is removed if it was made here. Otherwise the world stays, and the error says so.

    Args:
        path: The folder, or the name of the world in the database.
        store: URL of the database; None for a folder.
        data: Rows of the known classes.
        labels: Their classes.
        settings: The other arguments of ``OpenWorld.create``.
    """
    from offmap.loop import OpenWorld

    ours = store is None and not path.exists()
    with shell_remedies(), rows_called(data.name):
        require_classes(data, labels)
        made = OpenWorld.create(path, store=store, **settings)
        try:
            made.teach(named_rows(data), labels)
        except BaseException as error:
            made.close()
            if ours:
                shutil.rmtree(path, ignore_errors=True)
            else:
                left = f"the world {path} was made, but has no classes yet: teach some with 'offmap world teach'"
                reworded(error, lambda message: f"{message}; {left}")
            raise
    return made
