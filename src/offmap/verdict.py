"""What a model says about rows, computed in one pass; commands, reports and evaluation read nothing else."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from offmap.arrays import FloatArray
from offmap.parameters import Natural, require


@dataclass(frozen=True, kw_only=True, eq=False)
class Verdict:
    """The assessment of each row; every array has one entry per row.

    Args:
        novelty: Higher is more novel.
        novel: Whether the row is flagged.
        p_value: Conformal p-value, small for novel rows; None if the model was fitted without held-out rows.
        label: Predicted class, or the unknown label; None for detectors.
        closest: Most likely known class, whether the row is novel or not; None for detectors.
        proba: Probability of each known class, one column per class; None for detectors.
        entity: The entity that each row was assessed for; None if the model knows no entities.

    Example:
        >>> novelty, novel, p_value = np.array([0.1, 7.0]), np.array([False, True]), np.array([0.8, 0.01])
        >>> Verdict(novelty=novelty, novel=novel, p_value=p_value).to_frame()
           novelty  p_value  novel
        0      0.1     0.80  False
        1      7.0     0.01   True
    """

    novelty: FloatArray
    novel: NDArray[np.bool_]
    p_value: FloatArray | None = None
    label: NDArray[Any] | None = None
    closest: NDArray[Any] | None = None
    proba: FloatArray | None = None
    entity: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.novelty)

    def top(self, k: int) -> NDArray[np.intp]:
        """Indices of the ``k`` most novel rows, the most novel first; of rows that tie, the earlier one comes first.

        Example:
            >>> scores = np.array([0.1, 7.0, 2.0])
            >>> Verdict(novelty=scores, novel=scores > 5).top(2)
            array([1, 2])
        """
        require("k", k, Natural)
        return np.argsort(-self.novelty, kind="stable")[:k]

    def to_frame(self) -> pd.DataFrame:
        """A table with one line per row and the columns that the model has, without the probabilities."""
        columns = {
            "entity": self.entity,
            "novelty": self.novelty,
            "p_value": self.p_value,
            "novel": self.novel,
            "label": self.label,
            "closest": self.closest,
        }
        return pd.DataFrame({name: values for name, values in columns.items() if values is not None})
