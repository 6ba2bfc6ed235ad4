"""Fitting a detector to rows in Parquet files that do not fit in memory."""

import os
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from offmap.arrays import Rows, shifted, to_tensor
from offmap.data.parquet_rows import ParquetRows
from offmap.data.samplers import ParquetBatches
from offmap.distributed import current
from offmap.random_state import draw_seed, local_seed

# Rows in memory: those that set the threshold, and those that set scales and tell when to stop.
_MOST_HELD_OUT, _MOST_WATCHED = 100_000, 50_000
# Share of the rows that set scales and tell when to stop.
_WATCHED = 0.1


@runtime_checkable
class BatchTrained(Protocol):
    """A detector that can train on batches, wherever their rows come from."""

    def _fit_batches(self, sample: Tensor, batches: ParquetBatches) -> None:
        """Learns from batches; ``sample`` holds other rows, for scales and validation."""


def fit_from_disk(detector: Any, path: str | os.PathLike[str]) -> None:
    """Trains a detector on the rows of a Parquet file or a folder of them, and sets its threshold.

    Two samples of the rows are read into memory and never trained on: the held-out rows, and rows that set the scale of
    features and tell when to stop. The others are read again in each epoch.

    Args:
        detector: The detector, which must be a ``BatchTrained`` one.
        path: File or folder.
    """
    _require_streamable(detector)
    rng = detector._start()
    source = ParquetRows.open(path)
    held_out, watched = _samples(source, detector.calibration, rng)
    rows = source.at(np.union1d(held_out, watched))
    is_held_out = np.isin(np.union1d(held_out, watched), held_out)
    sample = detector._rows(_frame(rows[~is_held_out], source), reset=True)
    batches = ParquetBatches(
        source,
        detector.batch_size,
        left_out=np.union1d(held_out, watched),
        prepare=partial(_prepared, detector),
    )
    with local_seed(draw_seed(rng)):
        detector._fit_batches(to_tensor(sample, detector.device), batches)
    calibration = detector._rows(_frame(rows[is_held_out], source))
    (novelty,) = current().scored(lambda own: (detector._scored(detector._novelty, calibration[own]),), len(held_out))
    detector.promise_ = detector._new_promise().fit(novelty)


def _require_streamable(detector: Any) -> None:
    name, batch_trained = type(detector).__name__, isinstance(detector, BatchTrained)
    if not batch_trained:
        raise ValueError(f"X is a path, but {name} needs all rows in memory; read them, and give X as an array")
    if detector.calibration == "cv" or detector.contamination or detector.encoder is not None or detector.image_shape:
        raise ValueError(
            'X is a path, whose rows are read piece by piece: calibration="cv", contamination, encoder and image_shape '
            "need all of them in memory; leave them out, or give X as an array"
        )


def _samples(
    source: ParquetRows, calibration: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the held-out rows and of the watched ones, each a random sample in ascending order."""
    held_out = min(max(round(calibration * len(source)), 1), _MOST_HELD_OUT)
    watched = min(max(round(_WATCHED * len(source)), 1), _MOST_WATCHED)
    if held_out + watched + 2 > len(source):
        raise ValueError(f"X holds {len(source)} rows, too few to train on after {held_out + watched} are held out")
    drawn = rng.choice(len(source), held_out + watched, replace=False, shuffle=True)
    return np.sort(drawn[:held_out]), np.sort(drawn[held_out:])


def _frame(rows: Rows, source: ParquetRows) -> pd.DataFrame:
    """With the names of the columns, which the model remembers."""
    return pd.DataFrame(rows, columns=list(source.columns))


def _prepared(detector: Any, rows: Rows) -> Any:
    return to_tensor(shifted(detector, rows), detector.device)
