"""The contract of detectors that serve many tasks with one model.

A method writes ``_build_networks``, ``_fit`` (which returns an embedding of every task), ``_features`` (what is made of
a row, whatever the task), ``_familiarity`` (of rows to tasks) and ``_embed`` (of a new task). Ids, chunks, calibration,
streams and saving are done once, here and in ``model.py``.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from offmap.arrays import Rows
from offmap.calibration.conformal import FloatArray
from offmap.calibration.promise import Promise
from offmap.calibration.split import hold_out
from offmap.collaborative.exposures import check_index
from offmap.collaborative.ids import Id, Ids, Places, as_given, check_ids, same_kind
from offmap.collaborative.model import Embeddings, TaskModel
from offmap.parameters import Share
from offmap.random_state import local_seed
from offmap.verdict import Verdict


class Similar(NamedTuple):
    """Tasks like another one, the most similar first, and the cosine between their embeddings."""

    tasks: NDArray[Any]
    cosine: NDArray[np.float32]


@dataclass(kw_only=True, eq=False, repr=False)
class CollaborativeDetector(TaskModel):
    """Learns what is usual for each of many tasks (films, users, devices) from the exposures of all of them.

    Args:
        alpha: Rate of false alarms, over the exposures of all tasks together.
        calibration: Share of the exposures held out to set the threshold and the p-values; with 0 there are neither,
            and all exposures are learnt from.
    """

    calibration: Share = 0.1

    def fit(
        self,
        X: Any,
        tasks: ArrayLike,
        *,
        rows: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        embeddings: Embeddings | None = None,
    ) -> Self:
        """Learns from exposures.

        Args:
            X: Rows or images: one an exposure, or with ``rows`` each one once.
            tasks: Id of the task of each exposure: all integers, all strings, or all tuples of these.
            rows: Row of ``X`` that each exposure is of, where rows are shown to more than one task.
            labels: Label of each row of ``X``, for embeddings that are made of labels.
            embeddings: Vector of each task, for ``embedding="given"``: a mapping, a pair of ids and matrix, or a frame
                with the ids as its index.
        """
        rng = self._start()
        self._forget()
        ids, codes = np.unique(check_ids(tasks), return_inverse=True)
        if len(ids) < 2:
            raise ValueError(f"tasks must hold at least 2 tasks, to tell each from the others; got {len(ids)}")
        index = check_index(rows, _length(X), len(codes))
        train, held_out = self._split(codes, rng)
        checked = self._learnt_rows(X, index[train], rng)
        with local_seed(int(rng.integers(2**31))):
            shown = self._exposures(checked, index[train], codes[train], self._learn_labels(labels, len(checked)))
            vectors = self._fit(shown, None if embeddings is None else self._given(embeddings, ids)).detach()
        self.embedding_size_, self.centre_ = vectors.shape[1], vectors.mean(dim=0)
        self._build_table()
        self._place_first(ids, vectors, shown)
        self._set_threshold(checked, index[held_out], codes[held_out])
        return self

    def novelty(self, X: Any, tasks: ArrayLike, *, rows: ArrayLike | None = None) -> FloatArray:  # type: ignore[override] # the task is part of the question
        """How unfamiliar each row is to its task; higher is more novel.

        It ranks rows of one task. ``predict`` does not compare it with ``threshold_``, which is in standard deviations
        above the mean of a task's own exposures: what is much for one task may be little for another.

        Args:
            X: Rows or images.
            tasks: Id of a task for each.
            rows: Row of ``X`` that each of ``tasks`` is asked about, if not the one in its place.
        """
        return self._novelty_of(*self._pairs(X, tasks, rows))

    def p_value(self, X: Any, tasks: ArrayLike, *, rows: ArrayLike | None = None) -> FloatArray:  # type: ignore[override] # the task is part of the question
        r"""The conformal p-value of each row under "this is an exposure like those of its task"; small is novel.

        An exposure like those that were fitted gets a p-value of at most $\alpha$ with a probability of at most
        $\alpha$. The promise is over the exposures of all tasks together that were fitted with two or more. That it
        nearly holds for each task is the work of the levels: a score counts in standard deviations above the mean of
        its task's own exposures. Tasks of fewer than about ten exposures, above all new ones, are not known well enough
        for that: more of their own exposures than $\alpha$ are flagged.
        """
        pairs = self._pairs(X, tasks, rows)
        self._require_calibration("p_value")
        return self.promise_.p_value(self._levelled(*pairs))

    def predict(self, X: Any, tasks: ArrayLike, *, rows: ArrayLike | None = None) -> NDArray[np.int64]:
        """+1 for rows that are familiar to their task, -1 for novel ones."""
        pairs = self._pairs(X, tasks, rows)
        self._require_calibration("predict")
        return np.where(self.promise_.novel(self._levelled(*pairs)), -1, 1)

    def assess(self, X: Any, tasks: ArrayLike, *, rows: ArrayLike | None = None) -> Verdict:  # type: ignore[override] # the task is part of the question
        """Novelty on the scale of ``threshold_``, p-value and decision of each row for its task, in one pass."""
        levels = self._levelled(*self._pairs(X, tasks, rows))
        self._require_calibration("assess")
        return Verdict(
            novelty=levels,
            novel=self.promise_.novel(levels),
            p_value=self.promise_.p_value(levels),
            entity=as_given(check_ids(tasks)),
        )

    def familiarity(self, X: Any, tasks: ArrayLike | None = None) -> NDArray[np.float32]:
        """How familiar every row is to every task, as a matrix; higher is more familiar.

        Args:
            X: Rows or images.
            tasks: Ids of the columns; by default all tasks, in the order of ``task_ids_``.
        """
        X = self._checked(X)
        return self._matrix(X, np.arange(len(self.tasks_)) if tasks is None else self._places(check_ids(tasks)))

    def add_task(self, task: Id, X: Any, *, labels: ArrayLike | None = None) -> Self:
        """Makes a new task known from rows that were shown to it; the networks stay as they are.

        Args:
            task: Its id, of the type of the others.
            X: Its exposures; one is enough, and more are better.
            labels: Label of each, if the embeddings are made of labels.
        """
        X = self._checked(X)
        ids = check_ids([task], "task")
        same_kind(self.tasks_.ids, ids, "task")
        if self.tasks_.find(ids)[0] >= 0:
            raise ValueError(f"task {task!r} is known already; partial_fit adds exposures to it")
        index = np.arange(len(X))
        with torch.no_grad(), self._embedding_draws():
            self._grow(ids, self._exposures(X, index, np.zeros_like(index), self._known_labels(labels, len(X))))
        return self

    def partial_fit(
        self, X: Any, tasks: ArrayLike, *, rows: ArrayLike | None = None, labels: ArrayLike | None = None
    ) -> Self:
        """Takes in a piece of a stream: more exposures of known tasks, and exposures of new ones.

        The embeddings of these tasks move; networks, threshold and calibration stay as they are.
        """
        X = self._checked(X)
        ids, codes = np.unique(check_ids(tasks), return_inverse=True)
        index, coded = check_index(rows, len(X), len(codes)), self._known_labels(labels, len(X))
        same_kind(self.tasks_.ids, ids)
        places = self.tasks_.find(ids)
        known = places[codes] >= 0
        with torch.no_grad(), self._embedding_draws():
            if known.any():
                which, renumbered = np.unique(codes[known], return_inverse=True)
                shown = self._exposures(X, index[known], renumbered, coded)
                self._move(torch.from_numpy(places[which]).to(self.device), shown)
            if not known.all():
                which, renumbered = np.unique(codes[~known], return_inverse=True)
                self._grow(ids[which], self._exposures(X, index[~known], renumbered, coded))
        return self

    def similar_tasks(self, task: Id, k: int = 10) -> Similar:
        """The ``k`` tasks whose embeddings point most nearly the same way, seen from the mean of all."""
        check_is_fitted(self, "threshold_")
        (place,) = self._places(check_ids([task], "task"))
        centred = self.tasks_.column("embedding") - self.centre_
        cosine = torch.cosine_similarity(centred, centred[place].unsqueeze(0))
        cosine[place] = -torch.inf
        best = cosine.topk(min(k, len(cosine) - 1))
        return Similar(as_given(self.tasks_.ids[best.indices.cpu().numpy()]), best.values.cpu().numpy())

    @property
    def task_ids_(self) -> NDArray[Any]:
        """The ids of the tasks, in the order of their places."""
        return as_given(self.tasks_.ids)

    @property
    def task_embeddings_(self) -> NDArray[np.float32]:
        """The embedding of each task, in the order of ``task_ids_``."""
        return self.tasks_.column("embedding").cpu().numpy()

    @property
    def task_counts_(self) -> NDArray[np.int64]:
        """The exposures that each task was learnt from, in the order of ``task_ids_``."""
        return self.tasks_.column("count")[:, 0].cpu().numpy().astype(np.int64)

    def _forget(self) -> None:
        """Drops the networks of an earlier fit, which other parameters may not need."""
        for name in [name for name, value in vars(self).items() if isinstance(value, nn.Module)]:
            delattr(self, name)

    def _pairs(self, X: Any, tasks: ArrayLike, rows: ArrayLike | None) -> tuple[Rows, Places, Places]:
        X = self._checked(X)
        ids = check_ids(tasks)
        return X, check_index(rows, len(X), len(ids)), self._places(ids)

    def _places(self, ids: Ids) -> Places:
        places = self.tasks_.find(ids)
        if (places < 0).any():
            unknown = as_given(ids[places < 0])
            raise ValueError(f"tasks holds {unknown[0]!s}, which was never fitted; add_task makes a task known")
        return places

    def _split(self, codes: Places, rng: np.random.Generator) -> tuple[Places, Places]:
        if self.calibration == 0:
            return np.arange(len(codes)), np.arange(0)
        return hold_out(codes, self.calibration, rng)

    def _learnt_rows(self, X: Any, index: Places, rng: np.random.Generator) -> Rows:
        if self.encoder is None:
            return self._rows(X, reset=True)
        return self._encoded(X, None, np.unique(index), rng)

    def _learn_labels(self, labels: ArrayLike | None, length: int) -> Places | None:
        if labels is not None and pd.isna(np.asarray(labels)).any():
            raise ValueError("labels holds missing values; give them a label of their own")
        self.labels_ = np.empty(0) if labels is None else np.unique(np.asarray(labels))
        return self._known_labels(labels, length)

    def _known_labels(self, labels: ArrayLike | None, length: int) -> Places | None:
        """The code of each row's label, among those that were fitted."""
        if labels is None:
            return None
        values = np.asarray(labels)
        if values.shape != (length,):
            raise ValueError(f"labels must have one label for each of the {length} rows of X; got shape {values.shape}")
        if not np.isin(values, self.labels_).all():
            raise ValueError("labels holds a label that was not among those that were fitted")
        return np.searchsorted(self.labels_, values)

    def _set_threshold(self, X: Rows, index: Places, places: Places) -> None:
        self._set_common_level()
        levels = self._levelled(X, index, places) if len(index) else np.empty(0)
        self.promise_ = Promise(alpha=self.alpha).fit(levels)

    def _require_calibration(self, asked: str) -> None:
        if len(self.calibration_novelty_) == 0:
            raise ValueError(
                f"{asked} needs held-out exposures; fit with calibration above 0, and tasks of 2 exposures or more"
            )


def _length(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") and len(X.shape) else len(X)
