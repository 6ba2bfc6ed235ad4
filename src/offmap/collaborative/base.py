"""The contract of detectors that serve many entities with one model.

A method is a dataclass of parameters that composes three parts (see ``parts.py``): ``features_``, ``head_`` and
``solver_``. It writes ``_build_parts``, which makes them, and ``_fit``, which trains them and returns the embedding of
every entity. Ids, chunks, calibration, streams and saving are done once, here.
"""

from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from offmap.arrays import FloatArray, Rows
from offmap.calibration.conformal import CalibrationWarning
from offmap.calibration.foreign import row_count
from offmap.calibration.notices import warn_of_uncovered
from offmap.calibration.split import Split, hold_out, uncovered, uncovered_names
from offmap.collaborative.contract import EntityModel
from offmap.collaborative.entities import EntityTable
from offmap.collaborative.growth import Growth
from offmap.collaborative.ids import Id, Ids, Places, as_given, check_ids, same_kind
from offmap.collaborative.learning import Learner, observations
from offmap.collaborative.levels import pooled, standardised
from offmap.collaborative.observations import Observations, check_index
from offmap.collaborative.parts import Head, Learned, Solver, StreamSolver
from offmap.collaborative.scoring import Scoring
from offmap.collaborative.side_information import Embeddings, given_vectors, label_codes, label_set
from offmap.distributed import current
from offmap.errors import warn_caller
from offmap.estimator import OpenWorldEstimator
from offmap.parameters import Share
from offmap.random_state import draw_seed, local_seed


class Similar(NamedTuple):
    """Entities that are similar to another one, the most similar first, and the cosine between their embeddings."""

    entities: NDArray[Any]
    cosine: NDArray[np.float32]


@dataclass(kw_only=True, eq=False, repr=False)
class EntityDetector(EntityModel, OpenWorldEstimator):
    """Learns what is normal for each of many entities (films, users, devices) from the rows of all of them.

    Args:
        alpha: False-alarm rate that the threshold keeps, over the rows of all entities together.
        calibration: Share of the rows held out from training to set the threshold and the p-values. Each entity gives
            up one row or more, since its score depends on how many rows it was trained on; of entities with one row
            none is held out, and the promise does not cover them. With 0 all rows train, and there are scores but no
            threshold and no p-values.

    Attributes:
        entity_ids_: Ids of the entities.
        entity_embeddings_: Embedding of each entity, in the order of ``entity_ids_``.
        entity_counts_: Number of rows that each entity was learnt from, in the order of ``entity_ids_``.
        entities_: The table of entities.
        uncovered_: Entities with too few rows to hold any out, which the promise does not cover.
        features_: Maps rows to features.
        head_: Scores features against embeddings.
        solver_: Finds the embedding of an entity from its rows.
        embedding_size_: Numbers that describe an entity.
        centre_: Mean of the embeddings of the fitted entities; empty where every entity has a model of its own.
        labels_: The labels that were fitted, in ascending order; empty without labels.
        common_level_: Mean and variance of the raw novelty over all entities; None with ``calibration=0``.
        promise_: The ``Promise`` that decides, fitted on the held-out rows.
        threshold_: Rows with a novelty above it are flagged; infinite with ``calibration=0``.
        calibration_novelty_: Novelty of the held-out rows, in ascending order.
        input_shape_: Shape of one row.
        history_: Mean of each training term per epoch, by name.
    """

    always_fitted: ClassVar[frozenset[str]] = OpenWorldEstimator.always_fitted | {"common_level_", "embedding_size_"}

    calibration: Share = 0.1

    @abstractmethod
    def _build_parts(self) -> None:
        """Makes the parts from the parameters and fitted sizes, for ``_use_parts``; ``load`` calls it."""

    @abstractmethod
    def _fit(self, observed: Observations, given: Tensor | None) -> Learned:
        """Makes and trains the parts; returns the embedding of each entity.

        Args:
            observed: The training rows and their entities.
            given: The vectors passed to ``fit`` as ``embeddings``, one per entity.
        """

    def fit(
        self,
        X: Any,
        entities: ArrayLike,
        *,
        rows: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        embeddings: Embeddings | None = None,
    ) -> Self:
        """Learns from the rows of all entities.

        Args:
            X: Rows or images: one per id in ``entities``, or each one once if ``rows`` is given.
            entities: Id of the entity of each row: all integers, all strings, or all tuples of these.
            rows: Row of ``X`` that each id in ``entities`` refers to, where a row belongs to several entities.
            labels: Label of each row of ``X``, for embeddings that are made of labels.
            embeddings: Vector of each entity, for ``embedding="given"``: a mapping, a pair of ids and matrix, or a
                frame with the ids as its index.
        """
        rng = self._start()
        ids, codes = np.unique(check_ids(entities), return_inverse=True)
        if len(ids) < 2:
            raise ValueError(f"entities must hold at least 2 entities, to tell them apart; got {len(ids)}")
        index = check_index(rows, row_count(X), len(codes))
        train, held_out = self._split(codes, as_given(ids), rng)
        checked = self._training_rows(X, index[train], rng)
        self.labels_ = label_set(labels)
        with local_seed(draw_seed(rng)):
            coded = label_codes(labels, self.labels_, len(checked))
            observed = observations(checked, index[train], codes[train], coded, self.device)
            given = None if embeddings is None else torch.from_numpy(given_vectors(embeddings, ids)).to(self.device)
            learned = self._fit(observed, given)
        self._fill_table(ids, learned, observed)
        self.promise_ = self._new_promise().fit(self._held_out_novelty(checked, index[held_out], codes[held_out]))
        self._growth = Growth(self.entity_counts_)
        return self

    def fit_predict(
        self,
        X: Any,
        entities: ArrayLike,
        *,
        rows: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        embeddings: Embeddings | None = None,
    ) -> NDArray[np.int64]:
        """Fits the rows and says of each of them whether it is normal for its entity (+1) or novel (-1)."""
        self.fit(X, entities, rows=rows, labels=labels, embeddings=embeddings)
        return self.predict(X, entities, rows=rows)

    def familiarity(self, X: Any, entities: ArrayLike | None = None) -> NDArray[np.float32]:
        """How familiar every row is to every entity, as a matrix; minus ``raw_novelty`` of each pair.

        Args:
            X: Rows or images.
            entities: Ids of the columns; by default all entities, in the order of ``entity_ids_``.
        """
        X = self._checked(X)
        places = np.arange(len(self.entities_)) if entities is None else self._places(check_ids(entities))
        return self._scoring().matrix(X, places)

    def add_entity(self, entity: Id, X: Any, *, labels: ArrayLike | None = None) -> Self:
        """Adds an entity from a few of its rows; the networks stay as they are.

        Args:
            entity: Its id, of the type of the others.
            X: Its rows; one is enough, and more are better.
            labels: Label of each row, if the embeddings are made of labels.
        """
        X = self._checked(X)
        ids = check_ids([entity], "entity")
        same_kind(self.entities_.ids, ids, "entity")
        if self.entities_.find(ids)[0] >= 0:
            raise ValueError(f"entity {entity!r} is known already; partial_fit adds rows to it")
        index, codes = np.arange(len(X)), label_codes(labels, self.labels_, len(X))
        with torch.no_grad(), self._embedding_draws():
            self._learner().add(ids, observations(X, index, np.zeros_like(index), codes, self.device))
        return self

    def partial_fit(
        self, X: Any, entities: ArrayLike, *, rows: ArrayLike | None = None, labels: ArrayLike | None = None
    ) -> Self:
        """Takes in a batch of a stream: more rows of known entities, and rows of new ones.

        The embeddings of these entities change; networks, threshold and calibration stay as they are. Once an entity
        has a tenth more rows than at the time of calibration, a ``CalibrationWarning`` advises ``recalibrate``.
        Entities with a network or a forest of their own cannot take in more rows.
        """
        X = self._checked(X)
        ids, codes = np.unique(check_ids(entities), return_inverse=True)
        index, coded = check_index(rows, len(X), len(codes)), label_codes(labels, self.labels_, len(X))
        same_kind(self.entities_.ids, ids)
        places = self.entities_.find(ids)
        known = places[codes] >= 0
        solver = self._stream_solver() if known.any() else None
        growth = self._growth_so_far()
        with torch.no_grad(), self._embedding_draws():
            if solver is not None:
                which, renumbered = np.unique(codes[known], return_inverse=True)
                observed = observations(X, index[known], renumbered, coded, self.device)
                self._learner().update(solver, torch.from_numpy(places[which]).to(self.device), observed)
            if not known.all():
                which, renumbered = np.unique(codes[~known], return_inverse=True)
                self._learner().add(ids[which], observations(X, index[~known], renumbered, coded, self.device))
        if self.promise_.has_rows:
            growth.check(self.entity_counts_)
        return self

    def _growth_so_far(self) -> Growth:
        """What a fit left; a model that was loaded or recalibrated counts from its first rows on."""
        if not hasattr(self, "_growth"):
            self._growth = Growth(self.entity_counts_)
        return self._growth

    def remove_entities(self, entities: ArrayLike) -> Self:
        """Forgets entities, such as devices that are out of service; all else stays as it is."""
        check_is_fitted(self, "promise_")
        places = np.unique(self._places(check_ids(entities), "the model does not know; none was removed"))
        if len(places) == len(self.entities_):
            raise ValueError("entities names all that the model knows; at least one must stay")
        growth = self._growth_so_far()
        self.entities_.remove(places)
        growth.forget(places)
        return self

    def similar_entities(self, entity: Id, k: int = 10) -> Similar:
        """The ``k`` entities with the highest cosine between their embedding and that of ``entity``.

        Embeddings are centred at the mean of the fitted entities. Entities with a network or a forest of their own have
        no embeddings to compare.
        """
        check_is_fitted(self, "promise_")
        if not self.head_.comparable:
            raise ValueError(
                f"similar_entities needs embeddings; {type(self).__name__} gives every entity a model of its own"
            )
        (place,) = self._places(check_ids([entity], "entity"))
        centred = self.entities_.column("embedding") - self.centre_
        cosine = torch.cosine_similarity(centred, centred[place].unsqueeze(0))
        cosine[place] = -torch.inf
        best = cosine.topk(min(k, len(cosine) - 1))
        return Similar(as_given(self.entities_.ids[best.indices.cpu().numpy()]), best.values.cpu().numpy())

    @property
    def entity_ids_(self) -> NDArray[Any]:
        """The ids of the entities, in the order in which they were added."""
        return as_given(self.entities_.ids)

    @property
    def entity_embeddings_(self) -> NDArray[Any]:
        """The embedding of each entity, in the order of ``entity_ids_``."""
        return self.entities_.column("embedding").cpu().numpy()

    @property
    def entity_counts_(self) -> NDArray[np.int64]:
        """The number of rows that each entity was learnt from, in the order of ``entity_ids_``."""
        return self.entities_.counts.cpu().numpy().astype(np.int64)

    def _build(self) -> None:
        self._build_parts()
        self._build_table()

    def _try_out(self, rows: Rows) -> None:
        level = self.common_level_
        if level is not None and (len(level) != 2 or not all(type(value) is float for value in level)):
            raise ValueError("common_level_ must be a mean and a variance")
        if not isinstance(self.labels_, np.ndarray) or len(np.unique(self.entity_ids_)) != len(self.entities_):
            raise ValueError("labels_ must be an array, and the ids of entities must differ")
        places = np.zeros(len(rows), dtype=np.int64)
        if self._novelty_of(rows, np.arange(len(rows)), places).shape != (len(rows),):
            raise ValueError("a novelty must be one number per row")

    def _use_parts(self, features: nn.Module, head: Head, solver: Solver) -> None:
        self.features_: nn.Module = features.to(self.device)
        self.head_: Head = head.to(self.device)
        self.solver_: Solver = solver.to(self.device)

    def _build_table(self) -> None:
        widths = {"embedding": self.embedding_size_, "count": 1, "level": 2, **self.solver_.extra_columns}
        self.entities_ = EntityTable(widths, {"embedding": self.head_.dtype}).to(self.device)

    def _fill_table(self, ids: Ids, learned: Learned, observed: Observations) -> None:
        embeddings = learned.columns["embedding"].detach()
        self.embedding_size_ = embeddings.shape[1]
        self.centre_ = embeddings.mean(dim=0) if self.head_.comparable else torch.empty(0)
        self._build_table()
        Learner(self.features_, self.head_, self.solver_, self.entities_, self.calibration > 0).fill(
            ids, learned, observed
        )
        self.common_level_ = None
        if self.calibration > 0:
            common = pooled(self.entities_.column("level"), self.entities_.counts)
            self.common_level_ = [float(value) for value in common]

    def _novelty_of(self, X: Rows, index: Places, places: Places) -> FloatArray:
        novelty = self._raw_novelty_of(X, index, places)
        if self.common_level_ is None:
            return novelty
        at, table = torch.from_numpy(places), self.entities_
        levels, counts = table.column("level").cpu()[at], table.counts.cpu()[at]
        return standardised(torch.from_numpy(novelty), levels, counts, torch.tensor(self.common_level_)).numpy()

    def _held_out_novelty(self, X: Rows, index: Places, places: Places) -> FloatArray:
        if not len(index):
            return np.empty(0)
        (novelty,) = current().scored(lambda own: (self._novelty_of(X, index[own], places[own]),), len(index))
        return novelty

    def _raw_novelty_of(self, X: Rows, index: Places, places: Places) -> FloatArray:
        return self._scoring().novelty(X, index, places)

    def _scoring(self) -> Scoring:
        embeddings = self.entities_.column("embedding")
        return Scoring(self.features_, self.head_, embeddings, self.device, self._row_width())

    def _learner(self) -> Learner:
        return Learner(self.features_, self.head_, self.solver_, self.entities_, self.common_level_ is not None)

    def _stream_solver(self) -> StreamSolver:
        if isinstance(self.solver_, StreamSolver):
            return self.solver_
        raise ValueError(
            f"partial_fit cannot add rows to a known entity of {type(self).__name__}: its own model would have to see "
            "all its rows again; fit anew, or use add_entity for new entities"
        )

    def _embedding_draws(self) -> AbstractContextManager[None]:
        """The same draws for every new entity; nothing, which is faster, where there are none."""
        return local_seed(0) if self.solver_.draws else nullcontext()

    def _pairs(self, X: Any, entities: ArrayLike, rows: ArrayLike | None) -> tuple[Rows, Places, Places]:
        X = self._checked(X)
        ids = check_ids(entities)
        return X, check_index(rows, len(X), len(ids)), self._places(ids)

    def _places(self, ids: Ids, if_unknown: str = "was never fitted; add_entity (offmap add) makes it known") -> Places:
        places = self.entities_.find(ids)
        if (places < 0).any():
            raise ValueError(f"entities holds {as_given(ids[places < 0])[0]!s}, which {if_unknown}")
        return places

    def _split(self, codes: Places, ids: NDArray[Any], rng: np.random.Generator) -> Split:
        if self.calibration == 0:
            return Split(np.arange(len(codes)), np.arange(0))
        self.uncovered_ = uncovered_names(codes, ids)
        split = hold_out(codes, self.calibration, rng, from_every_group=True)
        if len(split.held_out):
            warn_of_uncovered(codes, uncovered(codes), ids, self.alpha)
        else:
            warn_caller("no entity has 2 rows, so none is held out: there is no threshold", CalibrationWarning)
        return split

    def _training_rows(self, X: Any, index: Places, rng: np.random.Generator) -> Rows:
        if self._encoder_for(X) is None:
            return self._rows(X, reset=True)
        return self._encoded(X, None, np.unique(index), rng)
