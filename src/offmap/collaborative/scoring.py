"""Scores rows against entities in chunks of one fixed size, so that a pair gets the same bytes in any company."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from offmap.arrays import FloatArray, Rows, in_chunks
from offmap.collaborative.ids import Places
from offmap.collaborative.parts import Head
from offmap.threads import side_by_side, workers_for

# Pairs whose features are held at once; rows, and entities, that are scored at once.
_BLOCK, CHUNK, _ENTITIES = 65536, 1024, 4096


@dataclass(frozen=True)
class Scoring:
    """What a fitted detector scores with.

    Args:
        features: Maps rows to features.
        head: Scores features against embeddings.
        embeddings: Embedding of each entity.
        device: Where torch works.
        row_width: Numbers that the features make of a row on the way, if they are more than the row has.
    """

    features: nn.Module
    head: Head
    embeddings: Tensor
    device: str
    row_width: int

    def novelty(self, X: Rows, index: Places, places: Places) -> FloatArray:
        """Minus the familiarity of the rows ``index`` of ``X`` to the entities at ``places``."""
        found = np.empty(len(index))
        shared = len(index) != len(X) or bool((index != np.arange(len(X))).any())
        if shared:
            used, index = np.unique(index, return_inverse=True)
            features = self.features_of(X[used])
        for start in range(0, len(index), _BLOCK):
            block = slice(start, start + _BLOCK)
            rows = features[index[block]] if shared else self.features_of(X[block])
            found[block] = -self._of_pairs(rows, places[block])
        return np.nan_to_num(found, nan=np.inf, posinf=np.inf, neginf=-np.inf)

    def matrix(self, X: Rows, places: Places) -> NDArray[np.float32]:
        """Familiarity of every row of ``X`` to every entity at ``places``."""
        found = np.empty((len(X), len(places)), dtype=np.float32)
        embeddings = self.embeddings[torch.from_numpy(places).to(self.device)]

        @torch.inference_mode()
        def fill(start: int) -> None:
            features = torch.from_numpy(self.features_of(X[start : start + CHUNK])).to(self.device)
            for first in range(0, len(places), _ENTITIES):
                part = self.head.score_all(features, embeddings[first : first + _ENTITIES])
                found[start : start + CHUNK, first : first + _ENTITIES] = part.cpu().numpy()

        self._for_chunks(fill, len(X))
        return found

    def features_of(self, X: Rows) -> Rows:
        """Features of rows as NumPy's."""
        (features,) = in_chunks(lambda rows: (self.features(rows),), X, self.device, self.row_width)
        return features

    def _of_pairs(self, features: Rows, places: Places) -> Rows:
        """Familiarity of each row to the entity beside it; the last chunk is filled up with zeros."""
        found = np.empty(len(features), dtype=np.float32)

        @torch.inference_mode()
        def fill(start: int) -> None:
            size = len(features[start : start + CHUNK])
            chunk = torch.zeros(CHUNK, *features.shape[1:], device=self.device)
            at = torch.zeros(CHUNK, dtype=torch.int64, device=self.device)
            chunk[:size] = torch.from_numpy(features[start : start + CHUNK])
            at[:size] = torch.from_numpy(places[start : start + CHUNK])
            found[start : start + size] = self.head.score_at(chunk, self.embeddings, at)[:size].cpu().numpy()

        self._for_chunks(fill, len(features))
        return found

    def _for_chunks(self, fill: Callable[[int], None], rows: int) -> None:
        """Calls ``fill`` with the first row of each chunk."""
        starts = range(0, rows, CHUNK)
        deque(side_by_side(fill, starts, workers_for(len(starts), self.device)), maxlen=0)


def all_features(features: nn.Module, X: Tensor) -> Tensor:
    """Features of training rows, which may be too many for one pass."""
    with torch.no_grad():
        return torch.cat([features(rows) for rows in X.split(CHUNK)])
