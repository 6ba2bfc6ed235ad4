"""The files of a world, and what a bad disk or an edit by hand makes of them."""

import copy
import json
import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np

from offmap.loop import OpenWorld
from tests.fuzz.models import ODD, damaged, places, require_printable

_PLAIN = [value for value in ODD if isinstance(value, bool | int | str | float | None)]


def try_world(original: Path, folder: Path, draw: random.Random) -> str:
    """Opens a copy of a world with damaged bytes and uses it, or one that was edited by hand and closes it again.

    Any error but these is one that no document mentions.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder)
    by_hand = draw.random() < 0.5
    if by_hand:
        _edit(folder / "journal.sqlite", draw)
    else:
        _damage(draw.choice(sorted(path for path in folder.rglob("*") if path.is_file())), draw)
    try:
        with OpenWorld.open(folder) as world:
            if not by_hand:
                world.observe(np.zeros((1, 2)), ids=["odd"])
                world.groups()
                world.status()
    except (ValueError, OSError) as error:
        require_printable(error)
        return "refused"
    return "used"


def _damage(path: Path, draw: random.Random) -> None:
    path.write_bytes(damaged(path.read_bytes(), draw))


def _edit(path: Path, draw: random.Random) -> None:
    """Replaces or removes one value of one entry, which the triggers of the journal would refuse."""
    database = sqlite3.connect(path)
    database.execute("DROP TRIGGER entries_stay")
    found = database.execute("SELECT number, content FROM entries").fetchall()
    number, text = draw.choice(found)
    content = json.loads(text)
    *above, name = draw.choice([place for place in places(content) if place])
    holder: Any = content
    for step in above:
        holder = holder[step]
    if draw.random() < 0.2:
        del holder[name]
    else:
        holder[name] = copy.deepcopy(draw.choice(_PLAIN))
    database.execute("UPDATE entries SET content = ? WHERE number = ?", (json.dumps(content), number))
    database.commit()
    database.close()
