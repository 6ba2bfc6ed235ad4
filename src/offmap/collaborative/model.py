"""The machinery under the contract: networks and embeddings to scores, chunk by chunk."""

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from offmap.arrays import Rows, in_chunks, to_tensor
from offmap.base import OpenWorldEstimator
from offmap.calibration.conformal import FloatArray
from offmap.calibration.contract import PromisedModel
from offmap.collaborative.exposures import Exposures
from offmap.collaborative.ids import Ids, Places, as_given, check_ids, same_kind
from offmap.collaborative.levels import levelled, merged, own_levels, pooled
from offmap.collaborative.tasks import TaskTable
from offmap.random_state import local_seed

Embeddings = Mapping[Any, ArrayLike] | tuple[ArrayLike, ArrayLike] | pd.DataFrame


@dataclass(kw_only=True, eq=False, repr=False)
class TaskModel(PromisedModel, OpenWorldEstimator):
    """A model of rows, and an embedding of each task, that together say how familiar a row is to a task."""

    @abstractmethod
    def _build_networks(self) -> None:
        """Makes the networks from the parameters and shapes; ``load`` calls it too."""

    @abstractmethod
    def _fit(self, shown: Exposures, given: Tensor | None) -> Tensor:
        """Learns the networks from exposures; returns the embedding of each task."""

    @abstractmethod
    def _features(self, X: Tensor) -> Tensor:
        """What is made of each row before any task is asked about it."""

    @abstractmethod
    def _familiarity(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """How familiar each row is to the task beside it; both arguments have the same length."""

    @abstractmethod
    def _embed(self, features: Tensor, shown: Exposures) -> Tensor:
        """The embedding of new tasks, from the features of the rows of ``shown``."""

    def _draws_to_embed(self) -> bool:
        """Whether the embedding of a new task takes random draws."""
        return True

    def _embedding_draws(self) -> AbstractContextManager[None]:
        """The same draws for every new task; nothing, which is faster, where there are none."""
        return local_seed(0) if self._draws_to_embed() else nullcontext()

    def _familiarity_at(self, features: Tensor, vectors: Tensor, at: Tensor) -> Tensor:
        """How familiar each row is to the task whose embedding is the row ``at`` of ``vectors``."""
        return self._familiarity(features, vectors[at])

    def _familiarity_to_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """How familiar each row is to each task, as a matrix."""
        found = features.new_empty(len(features), len(embeddings))
        at_once = max(1, _BLOCK // len(features))
        for first in range(0, len(embeddings), at_once):
            part = embeddings[first : first + at_once]
            beside = features.repeat_interleave(len(part), dim=0)
            scores = self._familiarity(beside, part.repeat(len(features), 1))
            found[:, first : first + at_once] = scores.view(len(features), len(part))
        return found

    def _learn_on(self, places: Tensor, features: Tensor, shown: Exposures) -> Tensor:
        """The embeddings of known tasks after more exposures: by default the mean of the old one and a new one."""
        count = self.tasks_.column("count")[places]
        share = shown.counts.unsqueeze(1) / (count + shown.counts.unsqueeze(1))
        old = self.tasks_.column("embedding")[places]
        return old + share * (self._embed(features, shown) - old)

    def _extra_widths(self) -> dict[str, int]:
        """Columns of the table of tasks beside those that every method has."""
        return {}

    def _extras(self, features: Tensor, shown: Exposures) -> dict[str, Tensor]:
        """What these columns hold for new tasks."""
        return {}

    def _build(self) -> None:
        self._build_table()
        self._build_networks()

    def _build_table(self) -> None:
        widths = {"embedding": self.embedding_size_, "count": 1, "level": 2}
        self.tasks_ = TaskTable(**widths, **self._extra_widths()).to(self.device)

    def _features_of(self, X: Rows) -> Rows:
        (features,) = in_chunks(lambda rows: (self._features(rows),), X, self.device, self._row_width())
        return features

    def _novelty_of(self, X: Rows, index: Places, places: Places) -> FloatArray:
        """Novelty of the rows ``index`` of ``X`` to the tasks at ``places``, in blocks that bound the memory."""
        found = np.empty(len(index))
        shared = len(index) != len(X) or bool((index != np.arange(len(X))).any())
        if shared:
            used, index = np.unique(index, return_inverse=True)
            features = self._features_of(X[used])
        for start in range(0, len(index), _BLOCK):
            block = slice(start, start + _BLOCK)
            rows = features[index[block]] if shared else self._features_of(X[block])
            found[block] = -self._paired(rows, places[block])
        return np.nan_to_num(found, nan=np.inf, posinf=np.inf, neginf=-np.inf)

    def _paired(self, features: Rows, places: Places) -> Rows:
        """Familiarity of rows to the tasks beside them, in chunks of one fixed size, as ``in_chunks`` has it."""
        found = np.empty(len(features), dtype=np.float32)
        table = self.tasks_.column("embedding")
        chunk = torch.zeros(_CHUNK, *features.shape[1:], device=self.device)
        at = torch.zeros(_CHUNK, dtype=torch.int64, device=self.device)
        with torch.inference_mode():
            for start in range(0, len(features), _CHUNK):
                size = len(features[start : start + _CHUNK])
                chunk[:size] = torch.from_numpy(features[start : start + _CHUNK])
                at[:size] = torch.from_numpy(places[start : start + _CHUNK])
                found[start : start + size] = self._familiarity_at(chunk, table, at)[:size].cpu().numpy()
        return found

    def _matrix(self, X: Rows, places: Places) -> NDArray[np.float32]:
        """Familiarity of every row of ``X`` to every task at ``places``."""
        found = np.empty((len(X), len(places)), dtype=np.float32)
        embeddings = self.tasks_.column("embedding")[torch.from_numpy(places).to(self.device)]
        with torch.inference_mode():
            for start in range(0, len(X), _CHUNK):
                features = torch.from_numpy(self._features_of(X[start : start + _CHUNK])).to(self.device)
                for first in range(0, len(places), _TASKS):
                    part = self._familiarity_to_all(features, embeddings[first : first + _TASKS])
                    found[start : start + _CHUNK, first : first + _TASKS] = part.cpu().numpy()
        return found

    def _exposures(self, X: Rows, index: Places, codes: Places, labels: Places | None) -> Exposures:
        used, index = np.unique(index, return_inverse=True)
        rows = X if len(used) == len(X) else X[used]
        coded = None if labels is None else torch.from_numpy(labels[used]).to(self.device)
        where = [torch.from_numpy(values).to(self.device) for values in (index, codes)]
        made = to_tensor(rows, self.device)
        if rows.ndim == 2 and not bool(made.isfinite().all()):
            # A score may be infinite; what is learnt may not, or it would spread to other tasks.
            raise ValueError("X holds values beyond the range of float32, which cannot be learnt from")
        return Exposures(made, where[0], where[1], coded)

    def _place(self, ids: Ids, vectors: Tensor, features: Tensor, shown: Exposures) -> None:
        """Appends tasks to the table."""
        columns = {"embedding": vectors, "count": shown.counts.unsqueeze(1).to(vectors)}
        levels = self._own_levels(features, vectors, shown)
        self.tasks_.add(ids, columns | {"level": levels} | self._extras(features, shown))

    def _place_first(self, ids: Ids, vectors: Tensor, shown: Exposures) -> None:
        """Fills the table after the networks were learnt."""
        needed = self.calibration > 0 or len(self._extra_widths()) > 0
        with torch.no_grad():
            self._place(ids, vectors, self._all_features(shown.X) if needed else vectors[:0], shown)

    def _all_features(self, X: Tensor) -> Tensor:
        """Features of rows that may be too many for one pass."""
        with torch.no_grad():
            return torch.cat([self._features(rows) for rows in X.split(_CHUNK)])

    def _grow(self, ids: Ids, shown: Exposures) -> None:
        """Takes in new tasks with the ids ``ids``."""
        features = self._all_features(shown.X)
        vectors = self._embed(features, shown).detach()
        self._place(ids, vectors, features, shown)

    def _move(self, places: Tensor, shown: Exposures) -> None:
        """Takes in more exposures of the tasks at ``places``."""
        features = self._all_features(shown.X)
        vectors = self._learn_on(places, features, shown).detach()
        new = self._own_levels(features, vectors, shown)
        count = self.tasks_.column("count")[places, 0]
        self.tasks_.column("level")[places] = merged(self.tasks_.column("level")[places], count, new, shown.counts)
        self.tasks_.column("embedding")[places] = vectors
        self.tasks_.column("count")[places, 0] += shown.counts

    def _own_levels(self, features: Tensor, vectors: Tensor, shown: Exposures) -> Tensor:
        """Level and spread of each task's own exposures; of no use, and left out, without calibration."""
        if self.calibration == 0:
            return vectors.new_zeros(len(vectors), 2)
        pieces = zip(shown.index.split(_CHUNK), shown.tasks.split(_CHUNK), strict=True)
        own = [self._familiarity_at(features[index], vectors, tasks) for index, tasks in pieces]
        return own_levels(-torch.cat(own), shown)

    def _levelled(self, X: Rows, index: Places, places: Places) -> FloatArray:
        novelty = torch.from_numpy(self._novelty_of(X, index, places))
        at = torch.from_numpy(places)
        levels, counts = self.tasks_.column("level").cpu()[at], self.tasks_.column("count").cpu()[at, 0]
        return levelled(novelty, levels, counts, torch.tensor(self.common_level_)).numpy()

    def _set_common_level(self) -> None:
        common = pooled(self.tasks_.column("level"), self.tasks_.column("count")[:, 0])
        self.common_level_ = [float(value) for value in common]

    def _given(self, embeddings: Embeddings, ids: Ids) -> Tensor:
        """The vectors that the user gave, in the order of ``ids``."""
        names, vectors = _as_pair(embeddings)
        table = TaskTable()
        keys = check_ids(names, "embeddings")
        if len(np.unique(keys)) != len(keys) or vectors.ndim != 2 or len(vectors) != len(keys):
            raise ValueError(_UNEVEN)
        if not np.isfinite(vectors).all():
            raise ValueError("embeddings holds NaN or infinities")
        same_kind(ids, keys, "embeddings")
        table.add(keys, {})
        places = table.find(ids)
        if (places < 0).any():
            raise ValueError(f"embeddings lacks the task {as_given(ids[places < 0])[0]!s}")
        return torch.from_numpy(vectors[places].astype(np.float32)).to(self.device)


def _as_pair(embeddings: Embeddings) -> tuple[Any, NDArray[Any]]:
    if isinstance(embeddings, pd.DataFrame):
        return embeddings.index.tolist(), embeddings.to_numpy(dtype=np.float64)
    names: Any
    vectors: Any
    names, vectors = (list(embeddings), list(embeddings.values())) if isinstance(embeddings, Mapping) else embeddings
    if len({np.shape(vector) for vector in vectors}) > 1:
        raise ValueError(_UNEVEN)
    return names, np.asarray(vectors, dtype=np.float64)


_UNEVEN = "embeddings must have one vector for each id, all of one length"
# Pairs whose features are held at once; rows, and tasks, that are scored at once.
_BLOCK, _CHUNK, _TASKS = 65536, 1024, 4096
