"""Contrastive features, and a few rows of each entity to compare with."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize, pad
from torch.optim import AdamW

from offmap.collaborative.base import EntityDetector
from offmap.collaborative.entities import Columns, EntityTable
from offmap.collaborative.networks import Network, perceptron, row_network
from offmap.collaborative.observations import Observations
from offmap.collaborative.parts import Head, Learned, PairHead, StreamSolver
from offmap.collaborative.scoring import all_features
from offmap.nets.steady import Linear
from offmap.parameters import Count, NonNegative, Positive, Share
from offmap.train import Batch, Batches, descend, train

# Pixels that a view may be moved by.
_FARTHEST = 2


def contrast(one: Tensor, other: Tensor, temperature: float) -> Tensor:
    r"""The cross entropy of finding the other view of a row among all views of a batch.

    $$-\log \frac{\exp(\cos(z_i, z_i') / \tau)}{\sum_{j \ne i} \exp(\cos(z_i, z_j) / \tau)}$$

    Reference: Chen et al., A Simple Framework for Contrastive Learning of Visual Representations, ICML 2020, eq. 1.
    """
    views = normalize(torch.cat([one, other]), dim=1)
    likeness = views @ views.T / temperature
    likeness.fill_diagonal_(-torch.inf)
    partner = torch.arange(len(views), device=views.device).roll(len(one))
    return cross_entropy(likeness, partner)


def view(X: Tensor) -> Tensor:
    """A random view of the same rows: images are moved and change in brightness, features get noise or are masked."""
    if X.ndim == 2:
        blurred = X + 0.2 * torch.randn_like(X) * X.std(dim=0)
        return torch.where(torch.rand_like(X) < 0.2, X.mean(dim=0), blurred)
    down, right = (int(torch.randint(2 * _FARTHEST + 1, ())) for _ in range(2))
    moved = pad(X, (_FARTHEST,) * 4)[..., down : down + X.shape[2], right : right + X.shape[3]]
    return moved * (0.7 + 0.6 * torch.rand(len(X), 1, 1, 1, device=X.device)) + 0.05 * torch.randn_like(moved)


def shifted(X: Tensor) -> Tensor:
    """Rows that count as different from those they are made of: images upside down, features mirrored."""
    return X.flip(2, 3) if X.ndim == 4 else 2 * X.mean(dim=0) - X


class NearestHead(PairHead):
    """Scores a row by its largest inner product with the rows that are kept of the entity.

    Args:
        kept: Rows kept per entity.
        size: Width of the features.
    """

    def __init__(self, kept: int, size: int) -> None:
        super().__init__()
        self.shape = (kept, size)

    def forward(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """Familiarity of each row to the entity beside it."""
        return torch.einsum("nd,nkd->nk", features, embeddings.unflatten(1, self.shape)).amax(dim=1)

    def score_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """Familiarity of every row to every entity, as a matrix."""
        kept, size = self.shape
        scores = features @ embeddings.view(len(embeddings) * kept, size).T
        return scores.view(len(features), len(embeddings), kept).amax(dim=2)


class RowSampler(StreamSolver):
    """Keeps the directions of some rows of each entity, drawn at random.

    Args:
        kept: Rows kept per entity.
        size: Width of the features.
    """

    def __init__(self, kept: int, size: int) -> None:
        super().__init__()
        self.shape = (kept, size)

    def embed(self, head: Head, features: Tensor, observed: Observations, table: EntityTable) -> Columns:
        """The rows kept of new entities."""
        return {"embedding": self(features, observed)}

    def forward(self, features: Tensor, observed: Observations) -> Tensor:
        """Directions of rows of each entity; where there are too few, some come twice."""
        mixed = torch.randperm(len(observed), device=features.device)
        order = mixed[torch.argsort(observed.entities[mixed], stable=True)]
        counts = observed.counts
        first = counts.cumsum(0) - counts
        rank = torch.arange(self.shape[0], device=features.device) % counts.unsqueeze(1)
        chosen = observed.index[order[first.unsqueeze(1) + rank]]
        return normalize(features[chosen], dim=2).flatten(1)

    def update(
        self, head: Head, features: Tensor, observed: Observations, table: EntityTable, places: Tensor
    ) -> Columns:
        """New rows replace old ones, so often that every row is equally likely to be kept."""
        old = table.column("embedding")[places].unflatten(1, self.shape)
        new = self(features, observed).unflatten(1, self.shape)
        before = table.counts[places]
        share = observed.counts / (observed.counts + before)
        # Other draws for each batch of a stream, or the same rows would stay for ever.
        generator = torch.Generator().manual_seed(int(before.sum()))
        taken = torch.rand(old.shape[:2], generator=generator).to(old.device) < share.unsqueeze(1)
        return {"embedding": torch.where(taken.unsqueeze(2), new, old).flatten(1)}


@final
@dataclass(kw_only=True, eq=False, repr=False)
class EntityContrastiveDetector(EntityDetector):
    r"""Compares a row with a few rows of its entity, in features learnt by contrasting rows and shifted rows.

    The score follows CSI: $\max_k \cos(z(x), z_k) \, \|z(x)\|$ over the kept rows $z_k$ of the entity. It is
    sized for a CPU: there is one small encoder, trained on the rows of all entities, where CSI trains a deep one per
    entity, and one kind of shift.

    Args:
        output_size: Width of the features.
        n_kept: Number of rows kept per entity, drawn at random. Raise it for entities with varied rows.
        temperature: τ of the contrastive loss.
        network: "conv" for images, "mlp" for any rows; "auto" takes convolutions for images of 16 pixels and more.
        hidden: Widths of the hidden layers.
        conv_channels: Channels of the first of four convolutions; the next have 2, 4 and 8 times as many.
        dropout: Share of the units dropped in training: one number, or one for each hidden layer.
        epochs: Passes over the rows of all entities.
        batch_size: Rows per step.
        lr: Step size.
        weight_decay: Weight decay of the networks.

    Attributes:
        centre_: Mean over the fitted entities of their kept rows.

    Reference: Tack et al., CSI: Novelty Detection via Contrastive Learning on Distributionally Shifted Instances,
    NeurIPS 2020.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> entities = np.repeat(np.arange(20), 50)
        >>> X = rng.normal(size=(1000, 2)) + np.stack([np.cos(entities), np.sin(entities)], axis=1) * 3
        >>> detector = EntityContrastiveDetector(epochs=10, random_state=0).fit(X, entities)
        >>> own, opposite = detector.novelty([[3.0, 0.0], [-3.0, 0.0]], [0, 0])
        >>> bool(own < opposite)
        True
    """

    spatial: ClassVar[bool] = True

    output_size: Count = 32
    n_kept: Count = 16
    temperature: Positive = 0.5
    network: Network = "auto"
    hidden: tuple[Count, ...] = (128, 64)
    conv_channels: Count = 16
    dropout: Share | tuple[Share, ...] = 0.0
    epochs: Count = 50
    batch_size: Count = 256
    lr: Positive = 1e-3
    weight_decay: NonNegative = 1e-4

    def _build_parts(self) -> None:
        body = row_network(self.input_shape_, self.network, self.conv_channels)
        widths = (body.outputs, *self.hidden)
        layers = nn.Sequential(perceptron(widths, self.dropout), Linear(widths[-1], self.output_size))
        shape = (self.n_kept, self.output_size)
        self._use_parts(nn.Sequential(body, layers), NearestHead(*shape), RowSampler(*shape))

    def _fit(self, observed: Observations, given: Tensor | None) -> Learned:
        self._build_parts()
        body, _ = self.features_.children()
        body.fit(observed.X)  # type: ignore[operator] # a RowNetwork
        optimizer = AdamW(self.features_.parameters(), lr=self.lr, weight_decay=self.weight_decay)

        def terms(batch: Batch) -> dict[str, Tensor]:
            rows = observed.X[batch[0]]
            both = torch.cat([rows, shifted(rows)])
            one, other = self.features_(torch.cat([view(both), view(both)])).chunk(2)
            return {"contrast": contrast(one, other, self.temperature)}

        self.history_ = train(
            descend(optimizer, terms),
            Batches((observed.index,), self.batch_size),
            epochs=self.epochs,
            state={"network": self.features_, "optimizer": optimizer},
            label="contrastive features",
        )
        features = all_features(self.features_, observed.X)
        return Learned({"embedding": self.solver_(features, observed)}, features)

    def _row_width(self) -> int:
        return 64 * self.conv_channels
