"""Model files, and what an attacker or a bad disk makes of them."""

import copy
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import offmap
from offmap import tensorfile
from offmap.collaborative import ClosedFormDetector, EntityForestDetector
from offmap.data import TableEncoder
from offmap.density import NearestNeighborDetector, TextureDetector, VAEDetector
from offmap.openset import ADBClassifier, LOFClassifier, MSPClassifier, OpenMaxClassifier
from offmap.persist import ModelFileError
from offmap.sampling import FGAN, RAS, SVGD, AmortisedSVGD, BinaryVAE

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(120, 3))
LABELS = np.array(["ant", "bee", "cow"])[np.arange(120) % 3]
ENTITIES = np.arange(120) % 5
TABLE = pd.DataFrame(
    {
        "amount": np.exp(RNG.normal(0, 2, 120)),
        "shop": np.array(["fuel", "food", "toys"])[RNG.integers(3, size=120)],
        "day": pd.Timestamp("2025-01-01") + pd.to_timedelta(RNG.integers(0, 900, 120), unit="h"),
        "age": np.where(RNG.random(120) < 0.2, np.nan, RNG.normal(40, 9, 120)),
    }
)
IMAGES = RNG.integers(256, size=(60, 8, 8), dtype=np.uint8)

# Values of the wrong type, size, sign or order, and text that a terminal would obey.
ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 10**4, 10**9, 10**18, 10**30, -(10**18), 0.5, -0.5, 1e300),
    *(math.nan, math.inf, -math.inf, "", "cpu", "meta", "cuda", "\x1b[31m\u202e", "x" * 5_000),
    *([], [1, 2], (), (1,), (10**7,), (20_000, 20_000), (10**6, 10**6, 3), (-1,), ((),), {}, {"a": 1}),
    *(np.zeros(0), np.zeros(3), np.full(3, np.nan), np.arange(5)[::-1].copy(), np.zeros((2, 2)), np.array(["b", "a"])),
    *(torch.zeros(0), torch.zeros(3), torch.full((3,), math.nan), torch.zeros(2, 3, dtype=torch.int64)),
    *("offmap.density.VAEDetector", "offmap.data.TextEncoder", "os.system", "minilm", "/tmp/elsewhere"),
]


def write_models(folder: Path) -> list[Path]:
    """Small models of different kinds."""
    few: dict[str, Any] = {"epochs": 1, "random_state": 0}
    models = [
        VAEDetector(hidden=(4,), latent_dim=2, **few).fit(ROWS),
        VAEDetector(hidden=(4,), latent_dim=2, extra_scores=("waic", "regret"), **few).fit(IMAGES),
        NearestNeighborDetector(random_state=0).fit(ROWS + 1e12),
        TextureDetector(random_state=0).fit(IMAGES),
        *(cls(hidden=(4,), **few).fit(ROWS, LABELS) for cls in (MSPClassifier, ADBClassifier, OpenMaxClassifier)),
        LOFClassifier(hidden=(4,), **few).fit(ROWS, ENTITIES),
        EntityForestDetector(n_estimators=3, random_state=0).fit(ROWS, ENTITIES),
        ClosedFormDetector(random_state=0).fit(ROWS, LABELS),
        NearestNeighborDetector(encoder=TableEncoder(), random_state=0).fit(TABLE),
        *_samplers(),
    ]
    paths = [folder / f"{number}.safetensors" for number in range(len(models))]
    for model, path in zip(models, paths, strict=True):
        model.save(path)
    return paths


def _samplers() -> list[Any]:
    small: dict[str, Any] = {"dim": 2, "hidden": (4,), "steps": 2, "batch_size": 8, "random_state": 0}
    return [
        FGAN(**small).fit(ROWS[:, :2].astype(np.float32)),
        RAS(log_density=_log_density, **small).fit(),
        AmortisedSVGD(log_density=_log_density, **small).fit(),
        SVGD(log_density=_log_density, dim=2, particles=8, steps=2, random_state=0).fit(),
        BinaryVAE(hidden=(4,), latent=2, epochs=1, random_state=0).fit((ROWS > 0).astype(np.float32)),
    ]


def _log_density(x: torch.Tensor) -> torch.Tensor:
    return -x.square().sum(dim=1) / 2


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
