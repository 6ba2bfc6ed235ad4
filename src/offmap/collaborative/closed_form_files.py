"""The closed form of pairs in Parquet files that do not fit in memory: two passes, a row group at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from offmap.arrays import Rows
from offmap.collaborative.closed_form_moments import ClosedFormMoments
from offmap.collaborative.entities import EntityTable
from offmap.collaborative.ids import Ids, Places, check_ids
from offmap.collaborative.learning import Learner, observations
from offmap.collaborative.levels import merged
from offmap.collaborative.observations import Observations, check_index
from offmap.collaborative.scoring import all_features
from offmap.data.parquet_rows import ParquetRows, Piece
from offmap.random_state import as_generator

Pairs = tuple[Rows, Places, Places]
# Held-out pairs that are kept in memory, at most.
_MOST_HELD_OUT = 100_000


@dataclass(frozen=True)
class PairFiles:
    """Pairs in Parquet files, of which some are held out.

    Args:
        source: The columns of features, or the one column of row numbers.
        entity: Name of the column of entities.
        X: Rows that the row numbers refer to; None if the files hold the features.
        held_out: Numbers of the pairs that are held out, in ascending order.
        detector: Validates the rows.
    """

    source: ParquetRows
    entity: str
    X: Rows | None
    held_out: NDArray[np.int64]
    detector: Any

    @classmethod
    def open(cls, path: Any, entity: str, row: str | None, X: Rows | None, detector: Any) -> Self:
        """Opens the files and draws the pairs that a detector holds out."""
        source = ParquetRows.open(path, None if row is None else [row], other=[entity])
        count = min(round(detector.calibration * len(source)), _MOST_HELD_OUT)
        drawn = as_generator(detector.random_state).choice(len(source), count, replace=False)
        return cls(source, entity, X, np.sort(drawn), detector)

    def moments(self, raw: nn.Module) -> tuple[Ids, ClosedFormMoments]:
        """Ids of all entities, and the moments of their raw features."""
        return reduce(
            lambda total, part: ClosedFormMoments.joined([total, part]),
            ((ids, ClosedFormMoments.of(all_features(raw, seen.X), seen)) for ids, seen in self._observed()),
        )

    def levels(self, learner: Learner, table: EntityTable) -> Tensor:
        """Mean and variance of the scores of each entity's own rows, by the final model."""
        levels, counts = torch.zeros(len(table), 2), torch.zeros(len(table))
        for ids, seen in self._observed():
            at = torch.from_numpy(table.find(ids))
            levels[at] = merged(levels[at], counts[at], learner.levels_of(seen, at).cpu(), seen.counts.cpu())
            counts[at] += seen.counts.cpu()
        return levels

    def held_out_pairs(self, table: EntityTable) -> Iterator[Pairs]:
        """The pairs that trained nothing, a row group at a time: rows, and of each pair its row and its entity's place.

        Of an entity whose pairs are all held out nothing is known; its pairs are left out.
        """
        for piece in self.source.pieces:
            chosen = self._is_held_out(piece)
            if chosen.any():
                rows, index, ids = self._pairs(piece, chosen)
                places = table.find(ids)
                yield rows, index[places >= 0], places[places >= 0]

    def _observed(self) -> Iterator[tuple[Ids, Observations]]:
        for piece in self.source.pieces:
            chosen = ~self._is_held_out(piece)
            if chosen.any():
                rows, index, all_ids = self._pairs(piece, chosen)
                ids, codes = np.unique(all_ids, return_inverse=True)
                yield ids, observations(rows, index, codes, None, self.detector.device)

    def _pairs(self, piece: Piece, chosen: NDArray[np.bool_]) -> tuple[Rows, Places, Ids]:
        rows, ids = self.source.read(piece), check_ids(self.source.column(piece, self.entity), self.entity)
        if self.X is None:
            named = hasattr(self.detector, "feature_names_in_")
            X = pd.DataFrame(rows, columns=list(self.source.columns)) if named else rows
            return self.detector._checked(X), np.flatnonzero(chosen), ids[chosen]
        return self.X, check_index(rows[:, 0].astype(np.int64), len(self.X), len(ids))[chosen], ids[chosen]

    def _is_held_out(self, piece: Piece) -> NDArray[np.bool_]:
        return np.isin(np.arange(piece.first, piece.first + piece.rows), self.held_out)
