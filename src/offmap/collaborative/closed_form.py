"""Shared features and a closed form for each entity."""

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Literal, Self, final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from offmap.collaborative.base import EntityDetector
from offmap.collaborative.blend import FEW, blend
from offmap.collaborative.closed_form_moments import ClosedFormMoments, joined_levels
from offmap.collaborative.closed_form_parts import ClosedFormFeatures, ClosedFormSolver, LinearRatioHead
from offmap.collaborative.features import FourierFeatures, PrincipalFeatures, RangePenalty
from offmap.collaborative.gram import Gram
from offmap.collaborative.heads import AppendOne, InnerProductHead, tower_features
from offmap.collaborative.ids import Ids, check_ids
from offmap.collaborative.learning import observations
from offmap.collaborative.levels import pooled
from offmap.collaborative.networks import Network, row_network
from offmap.collaborative.observations import Observations, check_index
from offmap.collaborative.pair_files import PairFiles
from offmap.collaborative.parts import Learned
from offmap.collaborative.scoring import all_features
from offmap.collaborative.training import EMBEDDING_LR_FACTOR, Schedule, contrast_loss, fit_jointly
from offmap.nets.image_rule import is_image
from offmap.parameters import Count, Fraction, Natural, NonNegative, Positive, Share


@final
@dataclass(kw_only=True, eq=False, repr=False)
class ClosedFormDetector(EntityDetector):
    r"""Scores the density ratio of an entity to all entities by a least-squares fit in shared features.

    $$w_t = (H + \lambda_n I)^{-1} (\mu_t - \bar\varphi), \qquad
    r_t(x) = 1 + \langle \varphi(x) - \bar\varphi, w_t \rangle$$

    The covariance $H$ of the features is computed once for all entities; an entity is the mean of its features and one
    product. A new entity takes no training, and a stream is a running mean that ends where a batch would. The ridge
    $\lambda_n = \lambda \bar h / n$ is chosen on held-out rows. An entity with $n$ < 10 rows is blended with its
    ``n_neighbors`` nearest entities: the mean of their weights counts $(10 - n) / 20$. Rows more than twice as far out
    as any training row are novel for all entities.

    Args:
        features: Which features are computed. "two_tower": learnt with a two-tower density ratio. "fourier": random
            features of a Gaussian kernel. "pca": principal components.
        embedding_size: Number of features, and width of an embedding. More are slower and need more rows per entity.
        ridge: λ, which shrinks the weights; None chooses it on the validation rows.
        n_neighbors: Entities that one with few rows is blended with; 0 for none.
        network: For "two_tower": "conv" for images, "mlp" for any rows; "auto" takes convolutions for images of 16
            pixels and more.
        hidden: For "two_tower": widths of the hidden layers.
        conv_channels: For "two_tower": channels of the first of four convolutions.
        dropout: For "two_tower": share of the units dropped in training.
        embedding_decay: For "two_tower": weight of the squared distance of embeddings from where they started.
        epochs: For "two_tower": passes over the rows of all entities, at most.
        batch_size: For "two_tower": rows per step.
        lr: For "two_tower": step size.
        weight_decay: For "two_tower": weight decay.
        patience: For "two_tower": epochs without a lower validation loss after which training stops.
        validation: Share of the rows that ``patience`` and the choice of the ridge look at.

    Attributes:
        centre_: Mean of the embeddings of the fitted entities.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> entities = np.repeat(np.arange(20), 50)
        >>> X = rng.normal(size=(1000, 2)) + np.stack([np.cos(entities), np.sin(entities)], axis=1) * 3
        >>> detector = ClosedFormDetector(features="fourier", random_state=0).fit(X, entities)
        >>> detector = detector.add_entity(77, rng.normal(size=(30, 2)) - [3.0, 0.0])
        >>> own, opposite = detector.novelty([[-3.0, 0.0], [3.0, 0.0]], [77, 77])
        >>> bool(own < opposite)
        True
    """

    spatial: ClassVar[bool] = True

    features: Literal["two_tower", "fourier", "pca"] = "two_tower"
    # Of widths 16, 32 and 64 and dropouts 0, 0.2 and 0.4 those with the best AUROC, one seed, on held-out MNIST
    # training images, over fitted and new entities; on users of MovieLens the nine are within two points.
    embedding_size: Count = 32
    ridge: Positive | None = None
    n_neighbors: Natural = 5
    network: Network = "auto"
    hidden: tuple[Count, ...] = (256, 128)
    conv_channels: Count = 16
    dropout: Share | tuple[Share, ...] = 0.4
    embedding_decay: NonNegative = 1e-2
    epochs: Count = 50
    batch_size: Count = 512
    lr: Positive = 1e-3
    weight_decay: NonNegative = 1e-4
    patience: Count | None = 10
    validation: Fraction = 0.1

    def fit_shard(self, X: Any, entities: ArrayLike, *, rows: ArrayLike | None = None) -> Self:
        """Returns a model of other rows with the features and the ridge of this one, for ``offmap.scale.merge``.

        All rows train; there is no threshold until the shards are merged. The sums to add are kept in ``moments_``.

        Args:
            X: Rows or images of a part of the data.
            entities: Id of the entity of each row; other parts may hold rows of the same entities.
            rows: Row of ``X`` that each id in ``entities`` refers to, if not the one in its place.
        """
        checked = self._checked(X)
        ids, codes = np.unique(check_ids(entities), return_inverse=True)
        index = check_index(rows, len(checked), len(codes))
        with torch.no_grad():
            observed = observations(checked, index, codes, None, self.device)
            raw = all_features(self._shared_features.raw, observed.X)
            shard = self._solved(ids, ClosedFormMoments.of(raw, observed))
            return shard._with_levels(shard._learner().levels_of(observed, torch.arange(len(ids))))

    def fit_files(self, path: str | os.PathLike[str], *, entity: str, row: str | None = None, X: Any = None) -> Self:
        """Returns a model of all pairs in Parquet files, with the features and the ridge of this one.

        Two passes read a row group at a time: memory grows with the number of entities, not of pairs. A share
        ``calibration`` of the pairs, of at most 100,000, is held out and sets the threshold.

        Args:
            path: A Parquet file, or a folder of them.
            entity: Name of the column of entities.
            row: Name of the column with the row of ``X`` of each pair; by default all other columns are features.
            X: The rows that ``row`` refers to.
        """
        files = PairFiles.open(self, path, entity, row, X)
        with torch.no_grad():
            model = self._solved(*files.moments(self._shared_features.raw))
        found: Self = files.calibrated(model)
        return found

    def merged_with(self, others: Sequence[Self]) -> Self:
        """The model of the rows of this shard and of others, without a threshold; ``offmap.scale.merge`` sets one."""
        models: list[Self] = [self, *others]
        if not all(hasattr(model, "moments_") and self._shares_features(model) for model in models):
            raise ValueError("models must share their features: fit one model, and the shards by its fit_shard")
        parts = [(model.entities_.ids, ClosedFormMoments(**model.moments_)) for model in models]
        if not all(torch.equal(model.moments_["counts"].float(), model.entities_.counts) for model in models):
            raise ValueError("models must be as fit_shard left them; rows or entities were added or removed since")
        with torch.no_grad():
            model = self._solved(*ClosedFormMoments.joined(parts))
            return model._with_levels(joined_levels(model.entities_, [model.entities_ for model in models]))

    def _solved(self, ids: Ids, moments: ClosedFormMoments) -> Self:
        """A model with the features of this one and the entities that the moments describe."""
        model, shared = copy(self), self._shared_features
        gram = Gram(self.embedding_size_).to(self.device)
        gram.set(moments.mean, moments.covariance)
        gram.ridge.copy_(shared.gram.ridge)
        model._compose(shared.raw, gram, shared.penalty)
        means, counts = gram.rotate(moments.entity_means.float()), moments.counts.float()
        weights = gram.solve(means, counts)
        embeddings = blend(weights, counts, weights[counts >= FEW], self.n_neighbors)
        model._build_table()
        columns = {"embedding": embeddings, "mean": means, "count": counts.unsqueeze(1)}
        model.entities_.add(ids, columns | {"level": torch.zeros(len(ids), 2)})
        model.centre_, model.moments_ = embeddings.mean(dim=0), vars(moments)
        model.promise_ = self._new_promise().fit(np.empty(0))
        return model

    def _with_levels(self, levels: Tensor) -> Self:
        """Takes the levels of the entities' own scores, where scores are standardised by them."""
        if self.calibration > 0:
            self.entities_.column("level")[:] = levels
            self.common_level_ = [float(value) for value in pooled(levels, self.entities_.counts)]
        return self

    def _shares_features(self, other: Self) -> bool:
        one, two = ({**part.raw.state_dict(), **part.penalty.state_dict(), "ridge": part.gram.ridge}
                    for part in (self._shared_features, other._shared_features))  # fmt: skip
        return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)

    @property
    def _shared_features(self) -> ClosedFormFeatures:
        assert isinstance(self.features_, ClosedFormFeatures)
        return self.features_

    def _build_parts(self) -> None:
        self._compose(self._new_features(), Gram(self.embedding_size_))

    def _compose(self, raw: nn.Module, gram: Gram, penalty: RangePenalty | None = None) -> ClosedFormFeatures:
        new = RangePenalty(prod(self.input_shape_), images=is_image(self.input_shape_))
        features = ClosedFormFeatures(raw, gram, new if penalty is None else penalty)
        self._use_parts(features, LinearRatioHead(), ClosedFormSolver(gram, self.n_neighbors))
        return features

    def _new_features(self) -> nn.Module:
        inputs, size = prod(self.input_shape_), self.embedding_size
        if self.features == "fourier":
            return FourierFeatures(inputs, size)
        if self.features == "pca":
            return PrincipalFeatures(inputs, size)
        body = row_network(self.input_shape_, self.network, self.conv_channels)
        # Without the constant feature of the two towers, which the closed form has built in.
        return tower_features(body, body.outputs, size + 1, tuple(self.hidden), self.dropout)[:-1]

    def _fit(self, observed: Observations, given: Tensor | None) -> Learned:
        self.__dict__.pop("moments_", None)
        self.embedding_size_ = self.embedding_size
        if self.features == "pca":
            self.embedding_size_ = min(self.embedding_size, prod(self.input_shape_))
        gram = Gram(self.embedding_size_)
        features = self._compose(self._new_features(), gram)
        training, validation = observed.split(self.validation)
        self._learn_features(features.raw, training, validation)
        raw = features.fit(observed)
        rotated = gram.rotate(raw)
        if self.ridge is not None:
            gram.ridge.fill_(self.ridge)
        elif len(validation):
            gram.choose_ridge(rotated, training, validation)
        weights = gram.solve(observed.entity_means(rotated), observed.counts)
        embeddings = blend(weights, observed.counts, weights[observed.counts >= FEW], self.n_neighbors)
        finished = features.finish_all(raw, observed.X)
        return Learned({"embedding": embeddings, "mean": observed.entity_means(finished[:, :-1])}, finished)

    def _learn_features(self, raw: nn.Module, training: Observations, validation: Observations) -> None:
        if isinstance(raw, FourierFeatures | PrincipalFeatures):
            raw.fit(training.X)
            return
        body, tower = raw.children()
        body.fit(training.X)  # type: ignore[operator] # a RowNetwork
        first = torch.randn(len(training.counts), self.embedding_size + 1, device=self.device) * 0.1
        vectors = nn.Embedding.from_pretrained(first, freeze=False, sparse=True)
        self.history_ = fit_jointly(
            contrast_loss(nn.Sequential(body, tower, AppendOne()), InnerProductHead()),
            raw,
            vectors,
            training,
            validation if self.patience is not None else validation.none(),
            Schedule.of(self),
            self.embedding_decay,
            EMBEDDING_LR_FACTOR,
        )
