"""Takes entities into the table: new ones, and more rows of known ones."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from offmap.arrays import Rows, to_tensor
from offmap.collaborative.entities import Columns, EntityTable
from offmap.collaborative.ids import Ids, Places
from offmap.collaborative.levels import merged, own_levels
from offmap.collaborative.observations import Observations
from offmap.collaborative.parts import Head, Learned, Solver, StreamSolver
from offmap.collaborative.scoring import CHUNK, all_features


@dataclass(frozen=True)
class Learner:
    """What a detector learns entities with, while its networks stay as they are.

    Args:
        features: Maps rows to features.
        head: Scores features against embeddings.
        solver: Finds embeddings.
        table: The entities.
        levels: Whether the level of each entity's own scores is needed.
    """

    features: nn.Module
    head: Head
    solver: Solver
    table: EntityTable
    levels: bool

    def fill(self, ids: Ids, learned: Learned, observed: Observations) -> None:
        """Fills the table with the entities of a fit."""
        features = learned.features
        if features is None:
            features = all_features(self.features, observed.X) if self.levels else observed.X[:0]
        with torch.no_grad():
            self._append(ids, learned.columns, features, observed)

    def add(self, ids: Ids, observed: Observations) -> None:
        """Takes in new entities with the ids ``ids``."""
        features = all_features(self.features, observed.X)
        columns = self.solver.embed(self.head, features, observed, self.table)
        self._append(ids, columns, features, observed)

    def update(self, solver: StreamSolver, places: Tensor, observed: Observations) -> None:
        """Takes in more rows of the entities at ``places``."""
        features, table = all_features(self.features, observed.X), self.table
        columns = solver.update(self.head, features, observed, table, places)
        new = self._levels_of(features, columns["embedding"], observed)
        table.column("level")[places] = merged(
            table.column("level")[places], table.counts[places], new, observed.counts
        )
        for name, values in columns.items():
            table.column(name)[places] = values.detach()
        table.column("count")[places, 0] += observed.counts

    def levels_of(self, observed: Observations) -> Tensor:
        """Mean and variance of the scores of each entity's own rows; the table holds these entities, in this order."""
        features = all_features(self.features, observed.X)
        return self._levels_of(features, self.table.column("embedding"), observed)

    def _append(self, ids: Ids, columns: Columns, features: Tensor, observed: Observations) -> None:
        embeddings = columns["embedding"].detach()
        count = observed.counts.unsqueeze(1).to(torch.float32)
        levels = self._levels_of(features, embeddings, observed)
        self.table.add(ids, columns | {"embedding": embeddings, "count": count, "level": levels})

    def _levels_of(self, features: Tensor, embeddings: Tensor, observed: Observations) -> Tensor:
        """Mean and variance of the scores of each entity's own rows; zeros where nobody needs them."""
        if not self.levels:
            return torch.zeros(len(embeddings), 2, device=embeddings.device)
        pieces = zip(observed.index.split(CHUNK), observed.entities.split(CHUNK), strict=True)
        own = [self.head.score_at(features[index], embeddings, entities) for index, entities in pieces]
        return own_levels(-torch.cat(own), observed)


def observations(X: Rows, index: Places, codes: Places, labels: Places | None, device: str) -> Observations:
    """The rows of ``X`` that are observed, as tensors."""
    used, index = np.unique(index, return_inverse=True)
    rows = X if len(used) == len(X) else X[used]
    coded = None if labels is None else torch.from_numpy(labels[used]).to(device)
    where = [torch.from_numpy(values).to(device) for values in (index, codes)]
    made = to_tensor(rows, device)
    if rows.ndim == 2 and not bool(made.isfinite().all()):
        # A score may be infinite. What is learnt may not, or it would spread to other entities.
        raise ValueError("X holds values beyond the range of float32, which cannot be learnt from")
    return Observations(made, where[0], where[1], coded)
