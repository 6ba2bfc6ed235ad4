"""Data files and arrays that are damaged, odd or made to hurt."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from offmap.data import read
from tests.fuzz.models import damaged, require_printable

_BIG = 10**25
ODD_ARRAYS: list[Any] = [
    *(None, 7, "text", b"bytes", [], [[]], [[None]], [[1, "a"]], [[1], [1, 2]], {"a": 1}, {1, 2}, object()),
    *(np.zeros((0, 3)), np.zeros((3, 0)), np.zeros(3), np.zeros((2, 3, 4, 5, 6)), np.full((2, 3), np.nan)),
    *(np.full((2, 3), np.inf), np.full((2, 3), 1e308), np.zeros((2, 3), dtype=complex), np.zeros((2, 3), dtype=bool)),
    *(np.zeros((2, 3), dtype="datetime64[s]"), np.full((2, 3), "NaT", dtype="datetime64[s]"), np.zeros((2, 3), "U3")),
    *(np.zeros((2, 3), dtype=np.float16), np.zeros((2, 3), dtype=np.uint64), np.array([[_BIG, 1, 2]], dtype=object)),
    *(pd.DataFrame({"a": [1, 2]}), pd.DataFrame(np.zeros((2, 3))), pd.DataFrame({"a": pd.to_datetime([0, 1])})),
    np.array([[["a"]]], dtype=object),
    *([[2**70, 1, 2]], [[-(2**63) - 1, 1, 2]], np.full((2, 3), 2**64 - 1, dtype=np.uint64)),
    *(np.full((2, 3), -(2**63)), [2**63, 2**63 + 1], [2**70, 1], np.array([2**64 - 1, 0], dtype=np.uint64)),
]


def write_files(folder: Path) -> list[Path]:
    """One small file of each kind that is read."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=30), "b": np.arange(30), "label": ["x", "y", "z"] * 10})
    numbers = frame[["a", "b"]]
    np.save(folder / "a.npy", numbers.to_numpy())
    np.savez(folder / "a.npz", X=numbers.to_numpy(), y=np.arange(30) % 3)
    np.savez_compressed(folder / "b.npz", X=numbers.to_numpy(), y=frame["label"].to_numpy(dtype=str))
    for name in ("a.csv", "b.csv.gz", "c.tsv"):
        frame.to_csv(folder / name, index=False, sep="\t" if name == "c.tsv" else ",")
    frame.to_parquet(folder / "a.parquet")
    pixels = Image.fromarray(rng.integers(256, size=(8, 8), dtype=np.uint8))
    for name in ("a.png", "a.jpg"):
        pixels.save(folder / name)
    return sorted(path for path in folder.iterdir() if path.is_file())


def try_file(path: Path, whole: bytes, folder: Path, draw: random.Random) -> str:
    """Reads a damaged file; "read" or "refused" in one line, anything else is an error that no document mentions."""
    content = damaged(whole, draw)
    for _ in range(draw.randrange(3)):
        content = damaged(content, draw) if content else b""
    picture = path.suffix in (".png", ".jpg")
    target = folder / ("pictures" if picture else "") / path.name
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(content)
    table = path.name.endswith((".csv", ".gz", ".tsv", ".parquet"))
    try:
        read(target.parent if picture else target, label="label" if table else None)
    except ValueError as error:
        require_printable(error)
        return "refused"
    finally:
        target.unlink()
    return "read"


def try_array(model: Any, draw: random.Random) -> str:
    """Scores or fits an odd array; scikit-learn's own errors are ``ValueError`` and ``TypeError``."""
    X, y = draw.choice(ODD_ARRAYS), draw.choice(ODD_ARRAYS)
    try:
        if draw.random() < 0.5:
            model.novelty(X)
        else:
            type(model)(epochs=1, random_state=0).fit(draw.choice([X, np.zeros((2, 3)), np.eye(4)]), y)
    except (ValueError, TypeError):
        return "refused"
    return "scored"
