"""From data to a model, from a model to scores: what the commands do, as functions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from offmap import catalog
from offmap.base import OpenSetClassifier
from offmap.data import Data
from offmap.files import replacing
from offmap.parameters import parse
from offmap.report import Sample, Section, section_from


def fit_model(method: str, data: Data, settings: Sequence[str], seed: int) -> Any:
    """Fits the method of that name, with ``name=value`` settings, to the data.

    Example:
        >>> from offmap.data import load
        >>> fit_model("vae", load("iris"), ["epochs=2", "latent=2"], seed=0)
        VAEDetector(epochs=2, latent=2, random_state=0)
    """
    cls = catalog.method(method).cls
    estimator = cls(**{"random_state": seed} | dict(parse(cls, setting) for setting in settings))
    if not issubclass(cls, OpenSetClassifier):
        return estimator.fit(data.X)
    if data.y is None:
        raise ValueError(f"{method} learns classes, but {data.name} has no labels; name their column with --label")
    return estimator.fit(data.X, data.y)


def score_rows(model: Any, data: Data) -> pd.DataFrame:
    """One row a row of the data: its novelty, p-value and whether it is flagged, or the class it gets."""
    novelty = model.novelty(data.X)
    columns: dict[str, Any] = {"row": np.arange(len(data)), "novelty": novelty}
    if len(model.calibration_novelty_):
        columns["p_value"] = model.p_value(data.X)
    columns["novel"] = novelty > model.threshold_
    if isinstance(model, OpenSetClassifier):
        columns["prediction"] = model.predict(data.X)
        columns["closest_class"] = model.predict_closed(data.X)
    return pd.DataFrame(columns)


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Writes a table as .parquet or .csv, by the name of the file."""
    writers = {".parquet": frame.to_parquet, ".csv": frame.to_csv}
    if path.suffix not in writers:
        raise ValueError(f"--out must end in {' or '.join(writers)}; got {path.name}")
    with replacing(path) as fresh:
        writers[path.suffix](fresh, index=False)


def evaluate_model(model: Any, normal: Data, novel: Data) -> Section:
    """Scores normal and novel rows and measures how well they are told apart."""
    name = next(method.name for method in catalog.methods() if isinstance(model, method.cls))
    return section_from(model, Sample(normal.X, normal.y), Sample(novel.X, novel.y), name=name)
