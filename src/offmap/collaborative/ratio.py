"""The density ratio of an entity's rows to those of all entities."""

import os
from copy import copy
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, Self, final

import numpy as np
import torch
from torch import Tensor, nn

from offmap.arrays import to_tensor
from offmap.batches import Sampler
from offmap.collaborative.embedding_detector import EmbeddingDetector
from offmap.collaborative.episodes import fit_components
from offmap.collaborative.features import RangePenalty
from offmap.collaborative.heads import ConcatHead, InnerProductHead, RatioHead, concat_features, tower_features
from offmap.collaborative.mixture import ComponentFeatures, MixtureHead, MixtureSolver, feature_sums
from offmap.collaborative.networks import RowNetwork
from offmap.collaborative.newton import NewtonSolver
from offmap.collaborative.observations import Observations
from offmap.collaborative.pair_files import PairFiles
from offmap.collaborative.pair_training import CodedPairs, PairBatches
from offmap.collaborative.parts import Learned
from offmap.collaborative.scoring import all_features
from offmap.collaborative.search import RatioSearch
from offmap.collaborative.side_information import label_set
from offmap.collaborative.training import EMBEDDING_LR_FACTOR, Schedule, contrast_loss, fit_jointly
from offmap.nets.image_rule import is_image
from offmap.parameters import Count, NonNegative, Positive
from offmap.random_state import draw_seed, local_seed

# Factor of first embeddings for an inner product, and rows of all entities that new embeddings are found with.
_SMALL, _SAMPLE = 0.1, 512


@final
@dataclass(kw_only=True, eq=False, repr=False)
class RatioDetector(EmbeddingDetector):
    r"""Scores how much more likely a row is among the rows of its entity than among those of all entities.

    One network serves all entities. Trained to tell an entity's own rows from those of others, it learns their log
    ratios:

    $$f(x, e_t) \to \log \frac{q_t(x)}{p(x)}, \qquad p = \sum_t m_t q_t.$$

    With ``head="mixture"`` entities are mixtures of components that all share. The network learns the probability of
    each component given a row, and the embedding of an entity is how often it shows each, by its rows and a prior:

    $$f(x, e_t) = \log \sum_k e_{tk} \, \psi_k(x), \qquad
    e_{tk} = \frac{\sum_{x \in t} \psi_k(x) / \pi_k + \kappa}{n_t + \kappa}.$$

    In training each row is recognised by the other rows of its entity. A new entity takes one pass over its rows and
    is found as those that were fitted, and a stream ends where one batch would. Rows more than twice as far out as any
    training row are novel for all entities; the other heads may find them familiar.

    With ``head="two_tower"`` the fit ends with one logistic regression per entity on the trained features, which gives
    the entity's embedding. Its prior is normal, with the mean and covariance of the trained embeddings.

    With ``head="concat"``, if embeddings are means over the rows of an entity, ``add_entity`` computes that mean for
    the new entity. With random or given embeddings, and with the two-tower head, it finds the most probable embedding
    given the new rows, under a normal prior with the mean and covariance of the fitted embeddings.

    Args:
        head: "mixture": shares of components, which take no search and suit many entities with few rows each; with few
            entities and many rows of each the size of its ratios is less exact than that of "two_tower". An epoch has
            at least four steps: a small table is passed over more than once. "concat" is the paper's perceptron of row
            and embedding. "two_tower" is the inner product of features of the row with the embedding; it learns from
            all pairs of a batch at once.
        embedding: For "concat" and "two_tower": where embeddings start, see above.
        embedding_size: Number of components, more than there are kinds of rows; width of random embeddings; number of
            clusters of "pseudo".
        embedding_decay: For "concat" and "two_tower": weight of the squared distance of embeddings from where they
            started.
        embedding_lr_factor: For "concat" and "two_tower": step size of the embeddings, as a multiple of ``lr``. None:
            10 where they start from nothing (random ones, and the two-tower head), since a batch moves only those of
            its own entities; 1 for others, as in the paper.

    Attributes:
        centre_: Mean of the embeddings of the fitted entities.

    Reference: Bai et al., Collaborative Anomaly Detection, algorithm 1 and section 4 ("concat").

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> entities = np.repeat(np.arange(20), 50)
        >>> X = rng.normal(size=(1000, 2)) + np.stack([np.cos(entities), np.sin(entities)], axis=1) * 3
        >>> detector = RatioDetector(random_state=0).fit(X, entities)
        >>> own, opposite = detector.novelty([[3.0, 0.0], [-3.0, 0.0]], [0, 0])
        >>> bool(own < opposite)
        True
    """

    head: Literal["mixture", "concat", "two_tower"] = "mixture"
    embedding_size: Count = 32
    # Of 0, 1e-3 and 1e-2 the one with the best mean AUROC, one seed, on held-out MNIST training images, over random and
    # learned starts of concat; it makes little difference to two towers.
    embedding_decay: NonNegative = 1e-3
    embedding_lr_factor: Positive | None = None

    def fit_files(
        self,
        path: str | os.PathLike[str],
        *,
        entity: str,
        row: str | None = None,
        X: Any = None,
        train: bool = False,
    ) -> Self:
        """Returns a model of all pairs in Parquet files, of which a row group at a time is read.

        By default the networks are those of this model, which a sample may have trained. Embeddings are found from all
        pairs in one pass, as ``partial_fit`` finds them in a stream; those of "mixture" are the same as if all pairs
        were in memory. A second pass measures levels and the threshold, for which a share ``calibration`` of the pairs,
        of at most 100,000, is held out. Memory grows with the number of entities, not of pairs.

        Args:
            path: A Parquet file, or a folder of them.
            entity: Name of the column of entities.
            row: Name of the column with the row of ``X`` of each pair; by default all other columns are features.
            X: The rows that ``row`` refers to.
            train: Whether to train new networks on the files, which are read once more per epoch; for "two_tower" with
                random embeddings, and with ``row`` and ``X``.
        """
        if self.head == "concat":
            raise ValueError('fit_files needs head="mixture" or "two_tower"; fit pairs of "concat" in memory')
        plain = self.head == "two_tower" and self.embedding == "random" and self.encoder is None
        if train and (not plain or X is None):
            raise ValueError('train=True needs head="two_tower", embedding="random", no encoder, and row and X')
        model = copy(self)
        rng = model._start() if train else None
        files = PairFiles.open(model, path, entity, row, X, reset=train)
        if rng is not None:
            with local_seed(draw_seed(rng)):
                model._train_on_files(files, rng)
        model._build_table()
        with torch.no_grad():
            files.stream_into(model)
        model.centre_ = model.entities_.column("embedding").mean(dim=0)
        found: Self = files.calibrated(model)
        return found

    def _train_on_files(self, files: PairFiles, rng: np.random.Generator) -> None:
        assert files.X is not None
        self.labels_, X = label_set(None), to_tensor(files.X, self.device)
        pairs = CodedPairs.of(files.source, files.entity, len(X))
        validation = pairs.watched(self.validation, files.held_out, rng)
        watched = pairs.observations(X, validation)
        first = _SMALL * torch.randn(len(pairs.ids), self.embedding_size, device=self.device)
        first = torch.cat([first, torch.zeros_like(first[:, :1])], dim=1)
        self.embedding_size_ = first.shape[1]
        body = self._body()
        features, head = self._new_ratio(body)
        solver = self._new_solver()
        self._use_parts(features, head, solver)
        body.fit(X)
        left_out = np.union1d(files.held_out, validation)
        batches = PairBatches.of(pairs, self.batch_size, left_out, self.device)
        split = watched.none(), watched if self.patience is not None else watched.none()
        embeddings = self._train(features, head, split, first, batches)
        solver.prepare(all_features(features, X[watched.sample(_SAMPLE)]), embeddings)

    def _build_parts(self) -> None:
        if self.head == "mixture":
            self._use_parts(*self._new_mixture(), MixtureSolver())
            return
        means = self._means_of_rows(self.embedding_size_) if self.head == "concat" else None
        self._use_parts(*self._new_ratio(self._body()), self._new_solver() if means is None else means)

    def _new_ratio(self, body: RowNetwork) -> tuple[nn.Module, RatioHead]:
        size, hidden = self.embedding_size_, tuple(self.hidden)
        if self.head == "concat":
            return concat_features(body, body.outputs, hidden), ConcatHead(size, hidden, self.dropout)
        return tower_features(body, body.outputs, size, hidden, self.dropout), InnerProductHead()

    def _new_solver(self) -> NewtonSolver | RatioSearch:
        if self.head == "two_tower":
            return NewtonSolver(self.embedding_size_, _SAMPLE)
        return RatioSearch(self.embedding_size_, _SAMPLE, self.hidden[0])

    def _new_mixture(self) -> tuple[ComponentFeatures, MixtureHead]:
        size, shape = self.embedding_size_, self.input_shape_
        penalty = RangePenalty(prod(shape), images=is_image(shape))
        return ComponentFeatures(self._body(), size, tuple(self.hidden), self.dropout, penalty), MixtureHead(size)

    def _fit_mixture(self, observed: Observations, given: Tensor | None) -> Learned:
        if self.embedding != "random" or given is not None:
            asked = f'embedding="{self.embedding}"' if given is None else "embeddings"
            raise ValueError(f'{asked} needs head="concat" or "two_tower"; "mixture" finds embeddings from the rows')
        self.embedding_size_ = self.embedding_size
        features, head = self._new_mixture()
        self._use_parts(features, head, MixtureSolver())
        features.fit(observed.X)
        schedule = Schedule.of(self)
        self.history_ = fit_components(features, head, *schedule.split(observed), schedule)
        known = all_features(features, observed.X)
        with torch.no_grad():
            return Learned({"embedding": head.embeddings(*feature_sums(known, observed))}, known)

    def _fit(self, observed: Observations, given: Tensor | None) -> Learned:
        if self.head == "mixture":
            return self._fit_mixture(observed, given)
        first, means = self._first_embeddings(observed, given)
        if self.head == "two_tower":
            # The last feature is a constant; its weight, the level of an entity, starts at 0.
            first, means = torch.cat([_SMALL * first, torch.zeros_like(first[:, :1])], dim=1), None
        self.embedding_size_ = first.shape[1]
        body = self._body()
        features, head = self._new_ratio(body)
        features.to(self.device), head.to(self.device)
        body.fit(observed.X)
        embeddings = self._train(features, head, Schedule.of(self).split(observed), first)
        if means is not None:
            self._use_parts(features, head, means)
            return Learned({"embedding": embeddings})
        self._use_parts(features, head, solver := self._new_solver())
        solver.prepare(all_features(features, observed.X[observed.sample(_SAMPLE)]), embeddings)
        if isinstance(solver, RatioSearch) or not self.tune_embeddings:
            return Learned({"embedding": embeddings})
        # Gradient steps stop short of the optimum; fitted and new entities are to be found alike.
        known = all_features(features, observed.X)
        with torch.no_grad():
            return Learned({"embedding": solver(known, observed)}, known)

    def _train(
        self,
        features: nn.Module,
        head: RatioHead,
        observed: tuple[Observations, Observations],
        first: Tensor,
        batches: Sampler | None = None,
    ) -> Tensor:
        vectors = nn.Embedding.from_pretrained(first, freeze=not self.tune_embeddings, sparse=True)
        schedule = Schedule.of(self)
        training, validation = observed
        self.history_ = fit_jointly(
            contrast_loss(features, head),
            nn.ModuleList([features, head]),
            vectors,
            training,
            validation,
            schedule,
            self.embedding_decay,
            self._lr_factor(),
            batches,
        )
        return vectors.weight.detach()

    def _lr_factor(self) -> float:
        if self.embedding_lr_factor is not None:
            return self.embedding_lr_factor
        return EMBEDDING_LR_FACTOR if self.head == "two_tower" or self.embedding == "random" else 1.0
