"""Model files, and what an attacker or a bad disk makes of them."""

import copy
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import offmap
from offmap import tensorfile
from offmap.data import TableEncoder
from offmap.monitor import DriftMonitor
from offmap.persist import ModelFileError
from offmap.sampling import BinaryVAE
from tests.fuzz.originals import IMAGES, ROWS, TABLE

# Values of the wrong type, size, sign or order, and text that a terminal would obey.
ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 10**4, 10**9, 10**18, 10**30, -(10**18), 0.5, -0.5, 1e300),
    *(math.nan, math.inf, -math.inf, "", "cpu", "meta", "cuda", "\x1b[31m\u202e", "x" * 5_000),
    *([], [1, 2], (), (1,), (10**7,), (20_000, 20_000), (10**6, 10**6, 3), (-1,), ((),), {}, {"a": 1}),
    *(np.zeros(0), np.zeros(3), np.full(3, np.nan), np.arange(5)[::-1].copy(), np.zeros((2, 2)), np.array(["b", "a"])),
    *(torch.zeros(0), torch.zeros(3), torch.full((3,), math.nan), torch.zeros(2, 3, dtype=torch.int64)),
    *("offmap.density.VAEDetector", "offmap.data.TextEncoder", "os.system", "minilm", "/tmp/elsewhere"),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every part of nested values."""
    yield path
    if isinstance(value, dict):
        for name, item in value.items():
            yield from places(item, (*path, name))


def damaged(whole: bytes, draw: random.Random) -> bytes:
    """Flipped bits, cuts, and blocks that come twice or are missing."""
    content = bytearray(whole)
    kind = draw.randrange(4)
    place, length = draw.randrange(len(whole)), draw.randrange(1, 64)
    if kind == 0:
        content[place] ^= 1 << draw.randrange(8)
    elif kind == 1:
        del content[place:]
    elif kind == 2:
        del content[place : place + length]
    else:
        content[place:place] = content[max(0, place - length) : place] or b"\0"
    return bytes(content)


def edited(content: Any, draw: random.Random) -> Any:
    """The content of a model file with one or two values replaced, removed or bent; the checksum is right."""
    changed = copy.deepcopy(content)
    for _ in range(draw.choice([1, 1, 1, 2])):
        *above, name = draw.choice([path for path in places(changed) if path])
        place = changed
        for step in above:
            place = place[step]
        if draw.random() < 0.15:
            del place[name]
        elif isinstance(place[name], torch.Tensor | np.ndarray) and draw.random() < 0.6:
            place[name] = _bent(place[name], draw)
        else:
            place[name] = copy.deepcopy(draw.choice(ODD))
    return changed


def _bent(array: Any, draw: random.Random) -> Any:
    """The same array with other numbers, order, type or shape."""
    kind = draw.randrange(5)
    if kind == 0:
        return array[::2] if array.ndim else array * 0
    if kind == 1:
        return array.reshape(-1)
    if kind == 2 and isinstance(array, torch.Tensor):
        return array.to(draw.choice([torch.float64, torch.int64, torch.bool, torch.uint8]))
    flat = array.reshape(-1).clone() if isinstance(array, torch.Tensor) else array.reshape(-1).copy()
    if len(flat) and getattr(flat.dtype, "kind", "f") in "fi" and not (kind == 3 and len(flat) < 2):
        floating = flat.is_floating_point() if isinstance(flat, torch.Tensor) else flat.dtype.kind == "f"
        wide = str(flat.dtype).endswith("int64")
        integers = [*_INTEGERS, *_WIDE_INTEGERS] if wide else _INTEGERS
        flat[draw.randrange(len(flat))] = draw.choice([math.nan, math.inf, -1e30] if floating else integers)
    return flat.reshape(array.shape)


# Places that do not exist, and numbers that other types cannot hold.
_INTEGERS = [0, 1, -1, 127]
_WIDE_INTEGERS = [10**6, 2**31, -(2**31) - 1, 2**62, -(2**63)]


def try_model(path: Path) -> str:
    """Loads and scores; returns "refused" or "scored". Any other outcome is an error that no document mentions."""
    try:
        model = offmap.load(path)
    except ModelFileError as error:
        require_printable(error)
        return "refused"
    try:
        if hasattr(model, "sample"):
            model.sample(5, random_state=0)
            return "sampled"
        if isinstance(model, BinaryVAE):
            model.elbo((ROWS[:5] > 0).astype(np.float32))
            return "scored"
        if not hasattr(model, "novelty"):
            return "other"
        rows = _rows_for(model)
        if hasattr(model, "entity_ids_"):
            model.assess(rows, model.entity_ids_[:1].repeat(5))
        else:
            model.assess(rows)
        _ = model.false_alarm_rate, model.promised_rate
    except ValueError as error:
        require_printable(error)
        return "unfit rows"
    return "scored"


def try_monitor(path: Path) -> str:
    """Goes on with the state of a monitor; returns "refused" or "used"."""
    try:
        monitor = DriftMonitor.load(path)
    except ValueError as error:
        require_printable(error)
        return "refused"
    monitor.update([0.0, 1.0]).to_dict()
    return "used"


def _rows_for(model: Any) -> Any:
    if isinstance(getattr(model, "encoder_", None), TableEncoder):
        return TABLE[:5]
    return ROWS[:5] if len(model.input_shape_) == 1 else IMAGES[:5]


def require_printable(error: Exception) -> None:
    """Fails if a message could steer a terminal."""
    assert str(error).isprintable(), f"the message holds control characters: {error!r}"


def contents(paths: list[Path]) -> list[Any]:
    """What the files hold."""
    return [tensorfile.read(path) for path in paths]
