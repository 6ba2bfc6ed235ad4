"""The distance to the k-th nearest known row."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from offmap.parameters import Count
from offmap.scores.neighbors import ROWS_AT_ONCE, most_similar
from offmap.scores.score import Outputs, Score, features_of, unit


@dataclass(kw_only=True, eq=False, repr=False)
class KNearest(Score):
    r"""Scores each row by the distance of $z / \|z\|$ to its $k$-th nearest known row.

    Args:
        n_neighbors: Which neighbour $k$ counts. Raise it if the known rows may contain outliers.

    Attributes:
        rows_: The known rows, of unit length, in single precision.

    Reference: Sun et al., Out-of-Distribution Detection with Deep Nearest Neighbors, 2022, equation 3.

    Example:
        >>> import torch
        >>> score = KNearest().fit(Outputs(features=torch.tensor([[1.0, 0.0], [0.0, 2.0]])))
        >>> score.novelty(Outputs(features=torch.tensor([[5.0, 0.0], [0.0, -1.0]])))
        tensor([0.0000, 1.4142], dtype=torch.float64)
    """

    rows_at_once: ClassVar[int] = ROWS_AT_ONCE

    n_neighbors: Count = 1

    def _fit(self, known: Outputs, codes: Tensor | None) -> None:
        require_neighbors(self.n_neighbors, len(known))
        self.rows_ = unit(features_of(known)).float()

    def _novelty(self, outputs: Outputs) -> Tensor:
        queries = unit(features_of(outputs))
        found = most_similar(queries.float(), self.rows_, self.n_neighbors)
        # From the difference itself: 2 - 2 cos has no digits left where the distance is small.
        return (queries - self.rows_[found.place[:, -1]].double()).norm(dim=1)


def require_neighbors(count: int, rows: int) -> None:
    """Refuses fewer known rows than neighbours."""
    if rows < count:
        raise ValueError(f"n_neighbors must be at most the number of known rows, {rows}; got {count}")
