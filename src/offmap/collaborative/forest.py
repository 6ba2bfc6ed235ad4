"""An isolation forest per entity."""

from dataclasses import dataclass
from math import prod
from typing import ClassVar, final

import torch
from sklearn.ensemble import IsolationForest
from torch import Tensor, nn

from offmap.arrays import start_of_equal_end
from offmap.collaborative.base import EntityDetector
from offmap.collaborative.entities import Columns, EntityTable
from offmap.collaborative.forest_nodes import Layout, packed
from offmap.collaborative.observations import Observations
from offmap.collaborative.parts import Head, Learned, Solver
from offmap.parameters import Count
from offmap.random_state import torch_seed


class ForestHead(Head):
    """Scores rows by the forest of their entity, as scikit-learn's ``score_samples`` does.

    Args:
        layout: How a forest is stored in a row of the table.
    """

    comparable = False
    dtype = torch.int32

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout

    def score_at(self, features: Tensor, embeddings: Tensor, at: Tensor) -> Tensor:
        r"""$-2^{-\mathbb{E} h(x) / c}$ for paths of length $h$ through the trees of each row's entity."""
        # Rows come in chunks of one size, filled up with equal rows: of those at the end, one goes through the trees.
        last = max(start_of_equal_end(rows.cpu().numpy()) for rows in (features, at.unsqueeze(1)))
        lengths = self._lengths(features[: last + 1], embeddings, at[: last + 1])
        # The power of a few numbers may round differently from that of a chunk.
        return -torch.exp2(-torch.cat([lengths, lengths[-1:].expand(len(at) - last - 1)]))

    def _lengths(self, features: Tensor, embeddings: Tensor, at: Tensor) -> Tensor:
        """The mean length of the paths of each row, in units of that of a random row."""
        layout = self.layout
        starts = embeddings[:, : layout.trees][at].long()
        values = embeddings[:, layout.trees : layout.trees + layout.nodes].view(torch.float32)
        codes = embeddings[:, layout.trees + layout.nodes :]
        node, entity = starts.clamp(min=0), at.unsqueeze(1)
        for _ in range(layout.depth):
            code = codes[entity, node].long()
            right, feature = code % layout.step, code // layout.step
            below = features.gather(1, feature) <= values[entity, node]
            # A leaf has no right child; a left child comes right after its parent.
            node = torch.where(right == 0, node, torch.where(below, node + 1, starts + right))
            # A file may say anything.
            node = node.clamp(0, layout.nodes - 1)
        return values[entity, node].masked_fill(starts < 0, 0.0).sum(dim=1)

    def score_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        """Familiarity of every row to every entity, one entity after the other."""
        places = torch.arange(len(embeddings), device=features.device)
        columns = [self.score_at(features, embeddings, place.expand(len(features))) for place in places]
        return torch.stack(columns, dim=1)


class ForestGrower(Solver):
    """Grows a forest for each new entity by scikit-learn.

    Args:
        layout: How a forest is stored.
        samples: Rows that a tree is grown from, at most.
    """

    def __init__(self, layout: Layout, samples: int) -> None:
        super().__init__()
        self.layout, self.samples = layout, samples

    def embed(self, head: Head, features: Tensor, observed: Observations, table: EntityTable) -> Columns:
        """The forests of new entities."""
        return {"embedding": torch.stack([self.layout.row(*forest) for forest in self(features, observed)])}

    def forward(self, features: Tensor, observed: Observations) -> list[tuple[list[Tensor], list[Tensor]]]:
        """Values and codes of the trees of each entity."""
        return [self._grown(features[rows]) for rows in observed.rows_by_entity()]

    def _grown(self, own: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        samples = min(self.samples, len(own))
        forest = IsolationForest(n_estimators=self.layout.trees, max_samples=samples, random_state=torch_seed())
        trees = [tree.tree_ for tree in forest.fit(own.cpu().numpy()).estimators_]
        return packed(trees, samples, self.layout.step)


@final
@dataclass(kw_only=True, eq=False, repr=False)
class EntityForestDetector(EntityDetector):
    r"""Fits one isolation forest per entity; rows that few splits isolate from the entity's rows are novel.

    Nothing is shared between entities. Forests are grown by scikit-learn and stored as arrays of 8 bytes per node, so
    that they are saved without pickle. The familiarity is scikit-learn's ``score_samples``,
    $-2^{-\mathbb{E} h(x) / c}$ for paths of length $h$. ``partial_fit`` takes in new entities only, and there are no
    embeddings that ``similar_entities`` could compare.

    Args:
        n_estimators: Trees per forest.
        max_samples: Largest number of rows that a tree is grown from. Every entity has the memory of the largest forest
            in ``fit``: one that is added later gets no more rows per tree, and fewer trees if its forest would be
            larger.

    Attributes:
        samples_: Rows that a tree is grown from, at most.

    Reference: Liu, Ting and Zhou, Isolation Forest, ICDM 2008.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> entities = np.repeat(np.arange(5), 50)
        >>> X = rng.normal(size=(250, 2)) + np.stack([np.cos(entities), np.sin(entities)], axis=1) * 3
        >>> detector = EntityForestDetector(n_estimators=20, random_state=0).fit(X, entities)
        >>> own, opposite = detector.novelty([[3.0, 0.0], [-3.0, 0.0]], [0, 0])
        >>> bool(own < opposite)
        True
    """

    spatial: ClassVar[bool] = False

    n_estimators: Count = 100
    max_samples: Count = 256

    def _build_parts(self) -> None:
        self._compose((self.embedding_size_ - self.n_estimators) // 2)

    def _compose(self, nodes: int) -> Layout:
        layout = Layout(self.n_estimators, nodes, self.samples_, prod(self.input_shape_))
        self._use_parts(nn.Identity(), ForestHead(layout), ForestGrower(layout, self.samples_))
        return layout

    def _fit(self, observed: Observations, given: Tensor | None) -> Learned:
        self.samples_ = min(self.max_samples, int(observed.counts.max()))
        self._compose(0)
        forests = self.solver_(observed.X, observed)
        layout = self._compose(max(sum(map(len, values)) for values, _ in forests))
        rows = torch.stack([layout.row(*forest) for forest in forests]).to(self.device)
        return Learned({"embedding": rows}, observed.X)
