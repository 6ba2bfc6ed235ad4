"""What MLflow calls to load an exported model. It reads the safetensors file; nothing is unpickled."""

import os
from dataclasses import dataclass
from typing import Any

import pandas as pd

from offmap.catalog import load
from offmap.export.columns import Columns


@dataclass(frozen=True)
class Scorer:
    """Scores tables as MLflow gives them.

    Args:
        model: The fitted model.
        columns: Which columns it reads.
    """

    model: Any
    columns: Columns

    def predict(self, given: Any) -> pd.DataFrame:
        """Returns novelty, p-value and decision per row; from a classifier also label and closest class."""
        rows = self.columns.rows(self.model, given)
        if self.columns.entity is not None:
            return self.model.assess(rows, given[self.columns.entity].to_numpy()).to_frame()
        return self.model.assess(rows).to_frame()


def _load_pyfunc(path: str | os.PathLike[str]) -> Scorer:
    """Loads the model; it may use nothing beyond the file and Offmap."""
    model = load(path)
    return Scorer(model, Columns.of(model))
