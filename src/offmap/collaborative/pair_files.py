"""Entities of pairs in Parquet files that do not fit in memory: two passes, a row group at a time."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from offmap.arrays import Rows
from offmap.collaborative.closed_form_moments import ClosedFormMoments
from offmap.collaborative.entities import EntityTable
from offmap.collaborative.ids import Ids, Places, check_ids
from offmap.collaborative.learning import Learner, observations
from offmap.collaborative.levels import merged, pooled
from offmap.collaborative.observations import Observations
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
    def open(
        cls, detector: Any, path: str | os.PathLike[str], entity: str, row: str | None, X: Any, *, reset: bool = False
    ) -> Self:
        """Opens the files and draws the pairs that a detector holds out.

        Args:
            detector: The detector.
            path: A Parquet file, or a folder of them.
            entity: Name of the column of entities.
            row: Name of the column with the row of ``X`` of each pair; None if all other columns are features.
            X: The rows that ``row`` refers to.
            reset: Whether the detector is yet to be fitted, to these rows.
        """
        if not reset:
            check_is_fitted(detector, "promise_")
        if (row is None) != (X is None):
            raise ValueError("give row and X together, or neither: row is a column of places in X")
        rows = None if X is None else detector._rows(X, reset=True) if reset else detector._checked(X)
        source = ParquetRows.open(path, None if row is None else [row], other=[entity])
        count = min(round(detector.calibration * len(source)), _MOST_HELD_OUT)
        drawn = as_generator(detector.random_state).choice(len(source), count, replace=False)
        return cls(source, entity, rows, np.sort(drawn), detector)

    def moments(self, raw: nn.Module) -> tuple[Ids, ClosedFormMoments]:
        """Ids of all entities, and the moments of their raw features."""
        return reduce(
            lambda total, part: ClosedFormMoments.joined([total, part]),
            ((ids, ClosedFormMoments.of(all_features(raw, seen.X), seen)) for ids, seen in self._observed()),
        )

    def stream_into(self, model: Any) -> None:
        """Adds the entities to the empty table of a model, which takes in their rows piece by piece.

        Args:
            model: A detector whose networks stay as they are, and whose solver is a ``StreamSolver``.
        """
        table, learner = model.entities_, _learner(model, levels=False)
        for ids, seen in self._observed():
            # An empty table does not know yet of which type its ids are.
            places = table.find(ids) if len(table) else np.full(len(ids), -1)
            (old,), (new,) = np.nonzero(places >= 0), np.nonzero(places < 0)
            if len(old):
                at = torch.from_numpy(places[old]).to(model.device)
                learner.update(model._stream_solver(), at, seen.only(torch.from_numpy(old).to(model.device)))
            if len(new):
                learner.add(ids[new], seen.only(torch.from_numpy(new).to(model.device)))

    def calibrated(self, model: Any) -> Any:
        """The model with the levels of its entities and the threshold that the held-out pairs set."""
        # Every pair is held out with the same chance, whatever its entity.
        model.common_level_, model.uncovered_ = None, []
        if self.detector.calibration > 0:
            with torch.no_grad():
                levels = self._levels(model)
            model.entities_.column("level")[:] = levels
            model.common_level_ = [float(value) for value in pooled(levels, model.entities_.counts.cpu())]
        scores = [model._novelty_of(*pairs) for pairs in self._held_out_pairs(model.entities_)]
        model.promise_ = self.detector._new_promise().fit(np.concatenate([np.empty(0), *scores]))
        # Rows are counted anew from here on.
        model.__dict__.pop("_growth", None)
        return model

    def _levels(self, model: Any) -> Tensor:
        """Mean and variance of the scores of each entity's own rows, by the final model."""
        table, learner = model.entities_, _learner(model, levels=True)
        levels, counts = torch.zeros(len(table), 2), torch.zeros(len(table))
        for ids, seen in self._observed():
            at = torch.from_numpy(table.find(ids))
            levels[at] = merged(levels[at], counts[at], learner.levels_of(seen, at).cpu(), seen.counts.cpu())
            counts[at] += seen.counts.cpu()
        return levels

    def _held_out_pairs(self, table: EntityTable) -> Iterator[Pairs]:
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
        where = f"{piece.path}: the column {self.entity!r}"
        ids = check_ids(self.source.column(piece, self.entity), where)[chosen]
        if self.X is not None:
            return self.X, row_numbers(self.source, piece, len(self.X))[chosen], ids
        rows, named = self.source.read(piece), hasattr(self.detector, "feature_names_in_")
        X = pd.DataFrame(rows, columns=list(self.source.columns)) if named else rows
        return self.detector._checked(X), np.flatnonzero(chosen), ids

    def _is_held_out(self, piece: Piece) -> NDArray[np.bool_]:
        return np.isin(np.arange(piece.first, piece.first + piece.rows), self.held_out)


def row_numbers(source: ParquetRows, piece: Piece, length: int) -> Places:
    """The row of ``X`` of each pair in a row group.

    Args:
        source: The one column of row numbers.
        piece: The row group.
        length: Number of rows of ``X``.
    """
    (numbers,) = source.read(piece).T
    where = f"{piece.path}: the column {source.columns[0]!r}"
    if len(broken := np.flatnonzero(numbers != np.round(numbers))):
        found = f"{numbers[broken[0]]} in row {source.row_in_file(piece, broken[0])}"
        raise ValueError(f"{where} must hold whole numbers; got {found}")
    if len(beyond := np.flatnonzero((numbers < 0) | (numbers >= length))):
        found = f"{numbers[beyond[0]]:.0f} in row {source.row_in_file(piece, beyond[0])}"
        raise ValueError(f"{where} holds {found}, but rows must be from 0 to {length - 1}, the rows of X")
    return numbers.astype(np.int64)


def _learner(model: Any, levels: bool) -> Learner:
    return Learner(model.features_, model.head_, model.solver_, model.entities_, levels)
