"""Models and tables of numbers, small enough to score in memory too."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from offmap.data.roles import Roles
from offmap.density import MahalanobisDetector

NAMES = ["u", "v", "w"]


def numbers(rows: int, seed: int = 0) -> pd.DataFrame:
    """Rows of numbers, each with an id."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, len(NAMES))), columns=NAMES)
    frame.insert(0, "id", rng.permutation(rows) + 10**12 * seed)
    return frame


def fitted() -> MahalanobisDetector:
    """A detector of these rows, which remembers that ``id`` names them."""
    model = MahalanobisDetector(random_state=0).fit(numbers(400)[NAMES])
    model.roles_ = Roles(id=("id",)).to_dict()
    return model


def write(frame: pd.DataFrame, path: Path, group: int = 100) -> Path:
    """Writes Parquet with row groups of so many rows."""
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=group)
    return path


def in_memory(model: MahalanobisDetector, frame: pd.DataFrame) -> pd.DataFrame:
    """What files of these rows must give."""
    scores = model.assess(frame[NAMES]).to_frame()
    numbered = pd.DataFrame({"row": np.arange(len(frame)), "id": frame["id"].to_numpy()})
    return pd.concat([numbered, scores], axis=1)
